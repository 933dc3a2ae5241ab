// Metrics: a line of JSON for each step and each epoch, for other programs to read. What is not
// finite, and a gradient's norm that nobody computed, is null.
//
//   {"kind":"step","epoch":1,"step":1,"loss":2.30,"lr":0.004,"samples":128,"grad_norm":1.7,
//    "seconds":0.01}
//   {"kind":"epoch","epoch":1,"train_loss":..,"test_loss":..,"test_accuracy":..,"seconds":..,
//    "samples_per_second":..,"sync_share":..,"data_seconds":..,"forward_seconds":..,
//    "backward_seconds":..,"sync_seconds":..,"update_seconds":..}
//
// What a task tells of training follows, as "train_target_angle" (Task::told_of_training), and of a
// model in stages "bubble", "predicted_bubble", "waiting_stage", "waiting_share", "waiting_for",
// "waiting_for_share", "median_step_seconds", of measured costs "predicted_step_seconds", and lists
// with a number for each stage (train/reports/stages_report.h).
//
// A verification adds a line for each of its sets; "seconds" are those of all of them:
//
//   {"kind":"verification","epoch":1,"step":1,"set":"lfw","pairs":6000,"xnorm":..,"accuracy":..,
//    "deviation":..,"accuracy_exact":..,"highest":..,"seconds":..}
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "base/files/line_file.h"
#include "train/reports/reports.h"

namespace ringlet::train {

/// Whether a file that can be read begins as a MetricsWriter's lines do, or is empty: a run was
/// killed before its first line.
bool holds_metrics(const std::filesystem::path& file);

class MetricsWriter : public RunListener {
 public:
  /// Opens the file. A run that starts anew (`first_step` 0) replaces it; a resumed one keeps the
  /// lines up to its first step and goes on behind them. An epoch whose line is there already, as
  /// the run was killed behind it, gets no second one; nor does a set that was verified then.
  /// `what` is its name in messages. Throws FileError.
  MetricsWriter(const std::filesystem::path& path, std::int64_t first_step,
                std::int64_t steps_per_epoch, const std::string& what = "--metrics");

  bool wants_grad_norm() const override { return true; }
  void step_done(const StepReport& report) override;
  void epoch_done(const EpochReport& report) override;
  void verified(const VerificationReport& report) override;

 private:
  std::int64_t told_epoch_ = 0;      // the last one whose line is kept
  std::set<std::string> told_sets_;  // of a verification after the first step, the same
  LineFile file_;
  std::int64_t first_step_;
};

}  // namespace ringlet::train
