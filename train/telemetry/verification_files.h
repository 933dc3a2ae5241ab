// VerificationFiles: what the last verification of a run has told of its pairs, replaced by each.
//
//   OUT/roc.csv         set,threshold,false_accept_rate,true_accept_rate: as of `ringlet verify`
//   OUT/distances.csv   set,pair,same,distance: of each pair, by its number in the file
//
// `ringlet report` shows both.
#pragma once

#include <filesystem>

#include "train/reports/reports.h"

namespace ringlet::train {

inline constexpr const char* kRocFile = "roc.csv";              ///< in OUT
inline constexpr const char* kDistancesFile = "distances.csv";  ///< in OUT

class VerificationFiles : public RunListener {
 public:
  /// `goes_on`: the run is resumed. What a new one finds in `out` is another run's: files and best
  /// model are removed. Throws FileError.
  VerificationFiles(std::filesystem::path out, bool goes_on);

  void verified(const VerificationReport& report) override;

 private:
  std::filesystem::path out_;
};

}  // namespace ringlet::train
