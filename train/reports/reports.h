// What a run reports to its listeners: numbers of a step, of an epoch, of an evaluation.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/core_pace.h"
#include "base/interference.h"
#include "nn/plan.h"
#include "train/files/phase_seconds.h"
#include "train/files/state_json.h"
#include "train/recipe/options.h"
#include "train/reports/stages_report.h"
#include "train/sync/gradient_sync.h"
#include "train/sync/strategy_pick.h"
#include "train/sync/sync_plan.h"
#include "train/task/evaluation.h"
#include "train/verification/verified.h"

namespace ringlet::train {

struct Forecast;  // train/forecast/forecast.h

/// One optimiser step. Epochs and steps count from 1.
struct StepReport {
  std::int64_t epoch = 0;
  std::int64_t step = 0;  ///< over the whole run
  std::int64_t step_in_epoch = 0;
  double loss = 0;  ///< mean over the samples of the whole world
  double lr = 0;
  std::int64_t samples = 0;  ///< of the whole world
  double seconds = 0;        ///< from the end of the step before, or from its own begin
  /// The host waited for its end. A step in flight that had ended before is told of late, and the
  /// next one's seconds are then too few.
  bool awaited = true;
  double data_seconds = 0;  ///< of these, rank 0's replica waited for data
  /// L2 norm of the gradient that the optimiser took; NaN where nobody asked for it.
  double grad_norm = std::numeric_limits<double>::quiet_NaN();
  bool skipped = false;   ///< under f16: its gradient was broken, and nothing was changed
  double loss_scale = 0;  ///< under f16: with which backward began; else 0
};

struct EpochReport {
  std::int64_t epoch = 0;
  std::int64_t step = 0;  ///< done by its end, over the whole run
  double train_loss = 0;
  std::vector<Figure> told{};  ///< Task::told_of_training()
  Evaluation test;
  double seconds = 0;  ///< of training, without the evaluation
  double samples_per_second = 0;
  double sync_share = 0;  ///< part of `seconds` that rank 0's replica spent in synchronisation
  /// What its thread saw of other work meanwhile; without what ranks that take turns wait.
  Interference interference{};
  CoreLooks core{};     ///< of the same thread at its core, twice a second; on processors
  PhaseSeconds phases;  ///< of rank 0's replica; on a GPU, of the thread that launches
  std::optional<BestTest> best{};  ///< of the run's epochs so far, this one included
  bool is_best = false;            ///< it is this one's
  /// Of a model in stages on processors; nothing where the run began behind the epoch's last step.
  std::optional<StagesReport> stages{};
};

/// The model on pairs of pictures, after a step.
struct VerificationReport {
  std::int64_t epoch = 0;
  std::int64_t step = 0;  ///< over the whole run
  const std::vector<Verified>& sets;
  const std::vector<BestVerification>& best;  ///< of each set so far, this one included
  double seconds = 0;
};

/// How a run was set up, reported once before the first step.
struct StartReport {
  const TrainOptions& options;
  const nn::Plan& plan;
  const std::vector<Bucket>& buckets;
  std::string data;                              ///< the data set in words
  std::string verification{};                    ///< the sets of pairs in words; empty: none
  std::string centres{};                         ///< centres_in_words(); empty: there are none
  std::string low_scale{};                       ///< low_scale_in_words()
  std::vector<std::int64_t> batch_of_replica{};  ///< samples a step
  int ranks = 1;                                 ///< of the world: of all stages of all replicas
  std::string stages{};                          ///< in words; empty: the model is not cut
  const Forecast* forecast = nullptr;            ///< of the stages; null: the model is not cut
  std::int64_t steps_per_epoch = 0;
  std::int64_t planned_steps = 0;
  std::int64_t first_step = 0;  ///< steps done before (resumed)
  std::string length{};         ///< length_in_words(); empty: as it was
  int shards = 1;
  std::int64_t samples_per_pass = 1;  ///< that the plan was made for
  Layout layout = Layout::nchw;
  std::string sync;
  StrategyPick pick{};  ///< how `auto` came by these strategies
  SyncPlan sync_plan{};
  std::string why_no_graph{};  ///< as Transport::why_no_captures(), or that there are stages
  std::string path{};          ///< Transport::path()
  std::string hosts{};         ///< Transport::hosts()
};

/// What synchronisation cost on rank 0, since this start of the run.
struct SyncReport {
  std::int64_t steps = 0;
  std::vector<double> seconds{};  ///< by bucket: GradientSync::median_seconds()
  double waited_seconds = 0;      ///< a step, of the replica's thread, in the mean
};

/// Hears of a run's events. Rank 0 calls its listeners from the replica's thread.
class RunListener {
 public:
  virtual ~RunListener() = default;
  /// Whether the listener uses StepReport::grad_norm. Asked once.
  virtual bool wants_grad_norm() const { return false; }
  virtual void started(const StartReport&) {}
  /// A step could not be captured as a graph: the run goes on without.
  virtual void graph_refused(const std::string& why) { (void)why; }
  virtual void step_done(const StepReport&) {}
  virtual void epoch_done(const EpochReport&) {}
  virtual void verified(const VerificationReport&) {}
  /// A state or the finished model was written.
  virtual void saved(const std::string& path) { (void)path; }
  /// Called before ended(), where several ranks made at least one step.
  virtual void synchronised(const SyncReport&) {}
  /// The last step was reported: the planned last one, or the one after which the run was asked to
  /// stop.
  virtual void ended() {}
};

}  // namespace ringlet::train
