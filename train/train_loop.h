// TrainLoop: what one rank does from the first step to the last. Every rank runs the same loop.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "data/loader.h"
#include "train/evaluator.h"
#include "train/gradient_sync.h"
#include "train/replica.h"
#include "train/reports.h"
#include "train/run_setup.h"
#include "train/stopwatch.h"

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

  RunResult run();

  /// One optimiser step; false when the run must end after it.
  bool step();

  Replica& replica() { return replica_; }
  const PhaseSeconds& phases() const { return phases_; }
  const Progress& progress() const { return progress_; }

 private:
  bool run_step();
  void load_start();
  void announce();
  void run_unit(std::int64_t unit, bool last, bool stop_wished);
  void write_counts(int arena, bool stop_wished);
  void check_loss(double loss);
  void report_step(double loss_sum, double lr, std::int64_t samples, double seconds);
  void after_step(bool stop);
  void end_epoch();
  void save_if_due(bool at_end);
  void save(bool finished);

  const RunSetup& setup_;
  Device& device_;
  comm::Communicator& communicator_;
  std::vector<RunListener*> listeners_;
  Replica replica_;
  ShardTree tree_;
  GradientSync sync_;
  Evaluator evaluator_;
  data::Loader loader_;
  Progress progress_;
  RunResult result_;
  PhaseSeconds phases_, phases_at_epoch_;
  Stopwatch epoch_watch_;             // since the first step of the epoch in this process
  std::int64_t trained_samples_ = 0;  // since then
  std::int64_t saved_step_ = -1;
};

}  // namespace ringlet::train
