// Console: what a run shows a person. On a terminal a line that renews itself, otherwise a plain
// line now and then; at the end of each epoch a row of the table, which thus grows as one watches.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "train/stopwatch.h"
#include "train/telemetry/reports.h"

namespace ringlet::train {

class Console : public RunListener {
 public:
  /// Writes to `out`; `terminal`: it can renew a line.
  Console(std::FILE* out, bool terminal) : out_(out), terminal_(terminal) {}
  /// Leaves no half line, whatever ended the run.
  ~Console() override { clear_line(); }
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void started(const StartReport& report) override;
  void step_done(const StepReport& report) override;
  void epoch_done(const EpochReport& report) override;
  void synchronised(const SyncReport& report) override { sync_taken_ = report; }

  /// After the run: clears the line; shows the table anew where plain lines stand between its rows,
  /// and what synchronisation took.
  void finish();

 private:
  void clear_line();
  void print_sync_taken();

  std::FILE* out_;
  bool terminal_;
  std::int64_t steps_per_epoch_ = 1, last_step_ = 1, first_step_ = 0;
  int epochs_ = 1;
  Stopwatch since_start_, since_line_;
  bool line_shown_ = false;    ///< on the terminal now
  bool table_broken_ = false;  ///< by plain lines
  double recent_seconds_ = 0, recent_samples_ = 0;
  std::vector<EpochReport> rows_;
  SyncPlan sync_plan_;
  SyncReport sync_taken_;
};

/// A row for each class, and one for the whole.
void print_evaluation(std::FILE* out, const Evaluation& evaluation,
                      const std::vector<std::string>& class_names);

/// 129068 -> "129,068"
std::string with_commas(std::int64_t number);

}  // namespace ringlet::train
