// Metrics: a line of JSON for each step and each epoch, for other programs to read.
//
//   {"kind":"step","epoch":1,"step":1,"loss":2.30,"lr":0.004,"samples":128}
//   {"kind":"epoch","epoch":1,"train_loss":..,"test_loss":..,"test_accuracy":..,"seconds":..,
//    "samples_per_second":..,"sync_share":..}
#pragma once

#include <filesystem>

#include "train/reports.h"

namespace ringlet::train {

class MetricsWriter : public RunListener {
 public:
  /// Opens the file. A run that starts anew (`first_step` 0) replaces it; a resumed one keeps the
  /// lines up to its first step and goes on behind them. Throws FileError.
  MetricsWriter(const std::filesystem::path& path, std::int64_t first_step,
                std::int64_t steps_per_epoch);
  ~MetricsWriter() override;
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  void step_done(const StepReport& report) override;
  void epoch_done(const EpochReport& report) override;

 private:
  void append(const char* text, std::size_t bytes);

  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace ringlet::train
