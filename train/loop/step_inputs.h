// StepInputs: the numbers that change from step to step. They lie in device memory, and are sent
// there in one copy that nobody waits for. So the launches of all steps are alike, and a captured
// graph can be replayed.
#pragma once

#include <cstdint>

#include "kernels/async_copy.h"
#include "kernels/memory.h"
#include "nn/parameters.h"
#include "train/optimizers/schedule.h"

namespace ringlet::train {

class StepInputs {
 public:
  explicit StepInputs(Device& device);

  /// For the step whose launches follow. `global_samples`: of the whole world; `own_samples`: of
  /// this rank.
  void upload(const Rates& rates, std::int64_t global_samples, std::int64_t own_samples,
              bool stop_wished);

  /// f32 [1]: 1 / samples of the world, where backward starts.
  View loss_seed() const { return at(kLossSeed, kRates); }
  /// f32 [2]: learning rate and momentum.
  ConstView rates() const { return at(kRates, kLossSum); }
  /// f32 [2]: own samples and the wish to stop, for the statistics.
  ConstView counts() const { return at(kCounts, kGradNorm); }
  /// All statistics of a step before it has a loss: 0, counts(), zeros.
  ConstView statistics() const { return at(kLossSum, kEnd); }

 private:
  enum Slot : std::int64_t {
    kLossSeed = 0,
    kRates = 1,
    kLossSum = 3,  // from here on in the order of the statistics (train_step.cc)
    kCounts = 4,
    kGradNorm = 6,
    kEnd = kLossSum + nn::Parameters::kStatistics
  };
  View at(Slot begin, Slot end) const { return numbers_.view().slice(begin, end); }

  Device& device_;
  Tensor numbers_;  // f32 [kEnd]
  Uploader uploader_;
};

}  // namespace ringlet::train
