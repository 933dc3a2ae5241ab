// TrainLoop: what one rank does from the first step to the last. Every rank runs the same loop.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/stopwatch.h"
#include "comm/communicator.h"
#include "train/batches/batch_source.h"
#include "train/loop/diagnose.h"
#include "train/loop/evaluator.h"
#include "train/loop/ranks.h"
#include "train/loop/run_reporter.h"
#include "train/loop/stage_link.h"
#include "train/loop/stage_state.h"
#include "train/loop/state_saver.h"
#include "train/loop/step_graphs.h"
#include "train/loop/train_step.h"
#include "train/loop/verifier.h"
#include "train/pipeline/program.h"
#include "train/reports/reports.h"
#include "train/setup/run_setup.h"
#include "train/sync/strategy_pick.h"

namespace ringlet::train {

/// How a run ended; equal on all ranks.
struct RunResult {
  std::int64_t step = 0;     ///< optimiser steps done, over the whole run
  bool finished = false;     ///< all planned steps, or as many as --max-steps allows, and the test
  bool interrupted = false;  ///< somebody asked to stop, and something is left to do
  Evaluation test;           ///< the last evaluation, if there was one
  std::optional<BestTest> best{};  ///< of the run's epochs
  bool stopped = false;            ///< --patience has ended the run, now or before
};

/// Where a rank's micro-batch `unit` of `units` in `step` stands. `by_rank`: the samples of each
/// rank's, of all units, where they are asked for.
MicroBatch micro_batch(const Partition& partition, std::int64_t step, std::int64_t unit,
                       std::int64_t units, std::span<const std::int64_t> by_rank = {});

class TrainLoop {
 public:
  /// `listeners` are told what happens; only rank 0 has any. Collective: all ranks construct and
  /// run() together. Throws MismatchError when the ranks' plans differ.
  TrainLoop(const RunSetup& setup, Device& device, comm::Communicator& communicator,
            std::span<RunListener* const> listeners)
      : TrainLoop(setup, device, ranks_of(communicator), listeners) {}
  /// Where the model may be cut into stages (RunSetup::stages), of which this rank has one.
  TrainLoop(const RunSetup& setup, Device& device, const Ranks& ranks,
            std::span<RunListener* const> listeners);
  /// Waits for the steps in flight: they use this memory.
  ~TrainLoop();
  TrainLoop(const TrainLoop&) = delete;
  TrainLoop& operator=(const TrainLoop&) = delete;

  RunResult run();

  /// One optimiser step; false when the run must end after it.
  bool step();

  /// Returns when every step so far has run and was reported.
  void settle();

  /// Under f16, for tests: what the scale of the loss starts from, and the steps that were skipped.
  void set_loss_scale(const LossScaleState& state) { step_.set_loss_scale(state); }

  Replica& replica() { return step_.replica(); }
  const Optimizer& optimizer() const { return step_.optimizer(); }
  const PhaseSeconds& phases() { return step_.phases(); }
  /// The whole model's state on rank 0; of several stages on no other rank. Collective.
  HostState collect();
  const Progress& progress() const { return progress_; }

 private:
  /// A step whose sums are on their way to the host, or have just come.
  struct Pending {
    std::int64_t step = 0;  // steps done with it
    std::int64_t samples = 0;
    double weight = 0;  // by which their sums were divided
    double lr = 0;
    StepSums sums{};
  };

  void check_plan();
  void pick_strategies();
  void keep_strategies();
  void check_stages();
  void agree_on_graphs();
  void rehearse();
  void load_start();
  std::string words_of_centres();
  void begin_step(std::int64_t samples);
  void list_rows(std::int64_t step);
  bool fails_soon();
  void compute_gradients();
  void act(const Action& action, const char* activity);
  void note(const char* activity);
  void forward(std::int64_t unit, const char* activity);
  const data::Batch& next_batch();
  void send_sums(std::int64_t samples);
  /// Takes in the sums of all steps but the last `in_flight`.
  void take_sums(std::size_t in_flight);
  void check_sums(const Pending& step);
  std::string broken_gradient();
  void report_settled();
  double& waits_of(const Move& move);
  void tell_stages();
  void after_step();
  bool wants_check(bool epoch_end) const;
  void check_replicas();
  void check_before_saving();
  bool test(const EndedEpoch& ended);
  bool wants_verification() const;
  bool verify();
  bool note_best(const std::vector<Verified>& sets);
  void end_if_broken();
  std::string once_mended(const char* resumed) const;
  std::string once_training_is_mended() const;
  [[noreturn]] void end_with_failure(const std::exception_ptr& failure, const std::string& remedy);
  void save_best();
  void save_if_due(bool at_end);

  const RunSetup& setup_;
  Device& device_;
  Ranks ranks_;
  comm::Communicator& communicator_;  // of the replicas
  Pipeline pipeline_;
  const Program& program_;               // what this rank does in each step
  std::vector<const char*> activities_;  // by action, in words; of a cut model
  RunReporter reporter_;
  TrainStep step_;
  std::unique_ptr<StageLink> link_;    // null: one stage
  std::unique_ptr<StageState> whole_;  // the same
  Evaluator evaluator_;
  Verifier verifier_;
  StateSaver saver_;
  std::unique_ptr<BatchSource> batches_;
  StepGraphs graphs_;
  std::vector<std::int64_t> samples_;          // of this replica's passes of a step
  std::vector<std::int64_t> samples_by_rank_;  // of each pass of a step; empty: nobody asks
  std::vector<std::int32_t> labels_;           // of a step; empty: nobody asks
  std::vector<Pending> pending_, settled_;     // the oldest first; a few at most
  std::vector<Rates> rates_;                   // of begin_step()
  double weight_ = 1;                          // of its samples
  GoodLoss good_loss_;
  bool had_finite_test_ = false;
  StageSeconds stage_seconds_;            // waits since tell_stages()
  std::optional<Stopwatch> stage_watch_;  // since the first step behind that
  PhaseSeconds phases_told_;              // of that time
  bool stop_agreed_ = false;              // the wish to stop has reached every rank
  std::exception_ptr failure_;            // of this rank's samples, a step or more ahead
  std::int64_t checked_step_ = -1;        // the replicas were compared after it
  Progress progress_;
  StrategyPick strategies_;
  RunResult result_;
};

}  // namespace ringlet::train
