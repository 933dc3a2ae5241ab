// RunReporter: tells the listeners of rank 0 what the loop does, and how long it takes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/core_pace.h"
#include "base/interference.h"
#include "base/stopwatch.h"
#include "comm/communicator.h"
#include "nn/parameters.h"
#include "train/loop/ranks.h"
#include "train/loop/train_step.h"
#include "train/reports/reports.h"
#include "train/setup/run_setup.h"

namespace ringlet::train {

class RunReporter {
 public:
  /// `setup` and the listeners outlive the reporter. On ranks other than 0 there are none.
  RunReporter(const RunSetup& setup, std::span<RunListener* const> listeners);

  bool wants_grad_norm() const { return wants_grad_norm_; }

  /// `centres`: what the loss's own take, in words.
  void started(const Ranks& ranks, const nn::Parameters& parameters, const std::string& centres,
               const std::vector<Bucket>& buckets, const StrategyPick& pick);
  /// Steps run eagerly from here on (step_graphs.h).
  void graph_refused(const std::string& why);
  /// A step of `samples` begins. `alone`: no earlier one waits to be reported.
  void step_begins(std::int64_t samples, bool alone);
  /// To be called in the order of the steps. `step`: steps done with it.
  void step_done(std::int64_t step, const StepSums& sums, double lr, const PhaseSeconds& phases);
  /// The epoch's last step is done: what it took. Its clock stops here.
  EndedEpoch end_epoch(const PhaseSeconds& phases);
  /// What the ranks' threads did in the epoch that has just ended, stage by stage.
  void stages_took(std::vector<StageSeconds> ranks) { stage_seconds_ = std::move(ranks); }
  void epoch_done(const Progress& progress, const EndedEpoch& ended, const Evaluation& test);
  void verified(const Progress& progress, const std::vector<Verified>& sets, double seconds);
  void saved(const std::string& path);
  void ended(const GradientSync& sync);

 private:
  void look_at_core();

  const RunSetup& setup_;
  std::vector<RunListener*> listeners_;
  bool wants_grad_norm_;
  PhaseSeconds phases_at_epoch_;
  double data_at_report_ = 0;  // seconds that had been waited for data then
  Stopwatch report_watch_;     // since the last report of a step
  /// Since the same step, where somebody listens.
  std::optional<InterferenceWatch> epoch_interference_;
  Interference interference_;         // of the epoch that ended last
  CoreLooks core_;                    // likewise, so far
  Stopwatch core_watch_;              // since the last of these looks
  bool in_turns_ = false;             // the ranks' threads outnumber this machine's processors
  Stopwatch epoch_watch_;             // since the first step of the epoch in this process
  std::int64_t trained_samples_ = 0;  // since then
  std::vector<StageSeconds> stage_seconds_;  // of the epoch that ended last; empty: not known
  std::vector<double> step_seconds_;  // of a model in stages: of the epoch's steps, or of the first
};

}  // namespace ringlet::train
