// Small training runs for tests: data by a formula, options, and what a run left behind.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "tests/oracle/formula_data.h"
#include "train/files/state.h"
#include "train/loop/train_loop.h"
#include "train/setup/run_setup.h"
#include "train/trainer.h"

namespace ringlet::train {

/// `count` samples of the formula (tests/oracle/formula_data.h), beginning with sample `first`.
std::shared_ptr<const data::Dataset> formula_dataset(std::int64_t count, std::uint32_t first = 0,
                                                     int classes = oracle::kFormulaClasses);

/// Training and test samples of the formula, not overlapping.
data::Splits formula_splits(std::int64_t train, std::int64_t test = 40,
                            int classes = oracle::kFormulaClasses);

/// One unshuffled epoch of `lenet` at a constant rate with momentum, on `replicas` replicas.
TrainOptions plain_options(int replicas, const std::string& sync = "ring");

/// The same in exact mode (strategy doubling), shuffled, with a one-cycle schedule and Nesterov.
TrainOptions exact_options(int replicas);

/// The same for a residual network with batch norm, of four channels: small enough for any test.
TrainOptions normed(TrainOptions options);

/// What a run reported and computed.
struct Outcome {
  RunResult result;
  std::vector<StepReport> steps;
  std::vector<EpochReport> epochs;
  HostState state;                   ///< of rank 0 at the end
  std::vector<HostState> of_ranks;   ///< all numbers of every rank at the end
  std::vector<std::int64_t> held;    ///< bytes of every rank's device at the end
  std::vector<std::string> buckets;  ///< their names
  std::vector<double> losses() const;
};

/// Called on every rank after the loop was made, before its first step.
using BeforeSteps = std::function<void(TrainLoop& loop, Device& device, int rank)>;

/// Trains to the end of the setup. Listeners given are told besides.
Outcome run(const RunSetup& setup, const std::vector<RunListener*>& listeners = {},
            const BeforeSteps& before = {});
Outcome run(const TrainOptions& options, const data::Splits& data,
            const std::vector<RunListener*>& listeners = {});

/// Every number of the model and the optimiser, as bytes.
std::string bytes_of(const HostState& state);

/// The largest relative L2 distance of any parameter.
double distance(const HostState& actual, const HostState& expected);

}  // namespace ringlet::train
