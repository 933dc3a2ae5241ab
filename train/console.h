// Console: what a run shows a person. On a terminal a line that renews itself, otherwise a plain
// line now and then; at the end of each epoch a row of the table, which thus grows as one watches.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "train/reports.h"
#include "train/stopwatch.h"

namespace ringlet::train {

class Console : public RunListener {
 public:
  /// Writes to `out`; `terminal`: it can renew a line.
  Console(std::FILE* out, bool terminal) : out_(out), terminal_(terminal) {}

  void started(const StartReport& report) override;
  void step_done(const StepReport& report) override;
  void epoch_done(const EpochReport& report) override;

  /// All epochs of this run as one table.
  void print_epochs() const;

 private:
  void clear_line();

  std::FILE* out_;
  bool terminal_;
  std::int64_t steps_per_epoch_ = 1, planned_steps_ = 1, first_step_ = 0;
  int epochs_ = 1;
  Stopwatch since_start_, since_line_;
  bool line_shown_ = false;
  double recent_seconds_ = 0, recent_samples_ = 0;
  std::vector<EpochReport> rows_;
};

/// "T-shirt/top     862 of 1000   86.2 %" for each class, and the whole.
void print_evaluation(std::FILE* out, const Evaluation& evaluation,
                      const std::vector<std::string>& class_names);

/// 129068 -> "129,068"
std::string with_commas(std::int64_t number);

}  // namespace ringlet::train
