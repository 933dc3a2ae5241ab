// Console: what a run shows a person. On a terminal a line that renews itself, otherwise a plain
// line now and then, indented; at the end of each epoch a row of the table, which thus grows as one
// watches. All of it fits the terminal: of the line and of the table the parts that say least are
// left out where there is no room.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "base/stopwatch.h"
#include "train/reports/reports.h"
#include "train/telemetry/progress.h"

namespace ringlet::train {

class Console : public RunListener {
 public:
  static constexpr double kRenewedEvery = 0.1;  ///< seconds: the line on a terminal
  static constexpr double kPlainEvery = 10;     ///< seconds between plain lines

  /// Writes to `out`; `terminal`: it can renew a line.
  Console(std::FILE* out, bool terminal)
      : Console(out, terminal, terminal ? kRenewedEvery : kPlainEvery) {}
  Console(std::FILE* out, bool terminal, double seconds_between_lines)
      : out_(out), terminal_(terminal), seconds_between_lines_(seconds_between_lines) {}
  /// Leaves no half line, whatever ended the run.
  ~Console() override { clear_line(); }
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void started(const StartReport& report) override;
  void graph_refused(const std::string& why) override;
  void step_done(const StepReport& report) override;
  void epoch_done(const EpochReport& report) override;
  void verified(const VerificationReport& report) override;
  void synchronised(const SyncReport& report) override { sync_taken_ = report; }

  /// After the run: clears the line, and shows whether other work disturbed it, what f16 skipped
  /// and what synchronisation took.
  void finish();

 private:
  /// "batch     256 samples a step, ..."
  void say(const char* what, const std::string& text);
  void clear_line();
  void say_cost(const StepReport& report);
  void print_sync_taken();

  std::FILE* out_;
  bool terminal_;
  double seconds_between_lines_;
  std::int64_t steps_per_epoch_ = 1, last_step_ = 1, first_step_ = 0;
  int epochs_ = 1;
  int idle_threads_ = 0;  ///< the --threads that would keep all processors busy; 0: these do
  Stopwatch since_start_, since_line_, since_first_;
  bool line_shown_ = false;  ///< on the terminal now
  bool told_of_lengths_ = false;
  double recent_seconds_ = 0, recent_samples_ = 0, recent_data_seconds_ = 0;
  std::int64_t skips_ = 0, scaled_steps_ = 0;  ///< under f16, of this start
  double loss_scale_ = 1;                      ///< the last one
  ProgressTable table_;
  SyncPlan sync_plan_;
  SyncReport sync_taken_;
  Interference interference_;  ///< over the epochs
  CoreLooks core_;             ///< likewise
};

/// "target angle 61.20 degrees, nearest wrong angle 70.01 degrees"
std::string in_words(const std::vector<Figure>& figures);

/// Of an evaluation in which some embeddings have no length.
std::string in_words_of_lengths(const Evaluation& test);

/// 129068 -> "129,068"
std::string with_commas(std::int64_t number);

}  // namespace ringlet::train
