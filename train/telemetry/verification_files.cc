#include "train/telemetry/verification_files.h"

#include <system_error>
#include <utility>

#include "base/files/atomic_file.h"
#include "base/files/posix_file.h"
#include "train/files/state.h"

namespace ringlet::train {

namespace fs = std::filesystem;

VerificationFiles::VerificationFiles(fs::path out, bool goes_on) : out_(std::move(out)) {
  if (goes_on) return;
  for (const char* name : {kRocFile, kDistancesFile, kBestFolder}) {
    std::error_code error;
    fs::remove_all(out_ / name, error);
    if (error) throw posix::file_error("remove", out_ / name, error.value());
  }
}

void VerificationFiles::verified(const VerificationReport& report) {
  write_file_atomically(out_ / kRocFile, roc_table(report.sets));
  write_file_atomically(out_ / kDistancesFile, distance_table(report.sets));
}

}  // namespace ringlet::train
