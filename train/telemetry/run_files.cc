#include "train/telemetry/run_files.h"

#include <filesystem>

#include "base/files/atomic_file.h"
#include "base/files/posix_file.h"
#include "train/telemetry/epoch_table.h"
#include "train/telemetry/metrics.h"
#include "train/telemetry/run_record.h"
#include "train/telemetry/tensorboard/event_writer.h"
#include "train/telemetry/verification_files.h"

namespace ringlet::train {

namespace fs = std::filesystem;

namespace {

/// --metrics may name a pipe, at whose other end the user reads. In a run's folder nobody may.
void refuse_pipe(const fs::path& file) {
  std::error_code error;
  const fs::file_type type = fs::status(file, error).type();
  if (type == fs::file_type::regular || type == fs::file_type::not_found) return;
  throw FileError("cannot write " + file.string() + ": it is no plain file; name another path");
}

/// A former run's, which this one need not replace.
void remove_former(const fs::path& file) {
  std::error_code error;
  fs::remove(file, error);
  if (error) throw posix::file_error("remove", file, error.value());
}

}  // namespace

RunFiles::RunFiles(const RunSetup& setup, const BuildFacts& build) {
  const Files& files = setup.options.files;
  const std::int64_t first = setup.first_step, per_epoch = setup.partition.steps_per_epoch();
  const fs::path own = files.out.empty() ? fs::path() : files.out / "metrics.jsonl";
  if (!own.empty()) {
    if (!setup.lock) RunLock::require_free(files.out);
    require_own_folder(setup);
    for (const char* name : {"metrics.jsonl", "epochs.csv"}) refuse_pipe(files.out / name);
    const bool goes_on = goes_on_in_out(setup);
    for (const char* name : {"metrics.jsonl", "epochs.csv", kRocFile, kDistancesFile}) {
      if (!goes_on) remove_former(files.out / name);  // of a run that this one is not
    }
    const std::vector<double> none(kTold, 0);
    const std::vector<Figure> told = task_of(setup.replica)->told_of_training(none);
    files_.push_back(std::make_unique<RunRecord>(files.out / "run.json", setup, build));
    files_.push_back(std::make_unique<MetricsWriter>(own, first, per_epoch, "metrics"));
    files_.push_back(
        std::make_unique<EpochTable>(files.out / "epochs.csv", first, per_epoch, told));
    files_.push_back(std::make_unique<VerificationFiles>(files.out, goes_on));
  }
  if (!files.tensorboard.empty()) {
    files_.push_back(std::make_unique<tensorboard::EventWriter>(files.tensorboard, first));
  }
  const bool twice =
      !own.empty() && fs::weakly_canonical(own) == fs::weakly_canonical(files.metrics);
  if (!files.metrics.empty() && !twice) {
    files_.push_back(std::make_unique<MetricsWriter>(files.metrics, first, per_epoch));
  }
}

std::vector<RunListener*> RunFiles::listeners() const {
  std::vector<RunListener*> listeners;
  for (const auto& file : files_) listeners.push_back(file.get());
  return listeners;
}

}  // namespace ringlet::train
