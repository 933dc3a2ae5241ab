// TrainLoop: what one rank does from the first step to the last. Every rank runs the same loop.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "kernels/async_copy.h"
#include "train/batches/batch_source.h"
#include "train/loop/evaluator.h"
#include "train/loop/replica.h"
#include "train/loop/step_graphs.h"
#include "train/loop/step_inputs.h"
#include "train/optimizers/optimizer.h"
#include "train/run_setup.h"
#include "train/sync/gradient_sync.h"
#include "train/telemetry/reports.h"
#include "train/telemetry/stopwatch.h"

namespace ringlet::train {

/// How a run ended; equal on all ranks.
struct RunResult {
  std::int64_t step = 0;     ///< optimiser steps done, over the whole run
  bool finished = false;     ///< all planned steps, or as many as --max-steps allows
  bool interrupted = false;  ///< somebody asked to stop
  Evaluation test;           ///< the last evaluation, if there was one
};

class TrainLoop {
 public:
  /// `listeners` are told what happens; only rank 0 has any. Collective: all ranks construct and
  /// run() together. Throws MismatchError when the ranks' plans differ.
  TrainLoop(const RunSetup& setup, Device& device, comm::Communicator& communicator,
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

  Replica& replica() { return replica_; }
  const Optimizer& optimizer() const { return *optimizer_; }
  const PhaseSeconds& phases() const { return phases_; }
  const Progress& progress() const { return progress_; }

 private:
  /// A step whose numbers are on their way to the host, or have just come.
  struct Pending {
    std::int64_t step = 0;  // steps done with it
    std::int64_t samples = 0;
    double lr = 0;
    double loss_sum = 0;
    double grad_norm = 0;
  };

  bool run_step();
  void compute_gradients();
  void update();
  void await_statistics(std::int64_t samples, double lr);
  /// Takes in the numbers of all steps but the last `in_flight`.
  void take_statistics(std::size_t in_flight);
  void report_settled();
  void load_start();
  void announce();
  void run_unit(std::int64_t unit, bool last);
  void check_loss(double loss, std::int64_t step);
  void report_sync();
  void report_step(const Pending& step, double seconds);
  void after_step();
  void end_epoch();
  bool save_is_due() const;
  void save_if_due(bool at_end);
  void save(bool finished);

  const RunSetup& setup_;
  Device& device_;
  comm::Communicator& communicator_;
  std::vector<RunListener*> listeners_;
  bool wants_grad_norm_;  // some listener does
  Replica replica_;
  std::unique_ptr<Optimizer> optimizer_;
  ShardTree tree_;
  GradientSync sync_;
  Evaluator evaluator_;
  std::unique_ptr<BatchSource> batches_;
  StepGraphs graphs_;
  StepInputs inputs_;
  Readback statistics_;
  std::vector<Pending> pending_, settled_;  // the oldest first; a few at most
  bool stop_agreed_ = false;                // the wish to stop has reached every rank
  Progress progress_;
  RunResult result_;
  PhaseSeconds phases_, phases_at_epoch_;
  Stopwatch report_watch_;            // since the last report of a step
  Stopwatch epoch_watch_;             // since the first step of the epoch in this process
  std::int64_t trained_samples_ = 0;  // since then
  std::int64_t saved_step_ = -1;
};

}  // namespace ringlet::train
