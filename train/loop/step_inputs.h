// StepInputs: the numbers that change from step to step. They lie in device memory, and are sent
// there in one copy that nobody waits for. So the launches of all steps are alike, and a captured
// graph can be replayed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/host_copy.h"
#include "kernels/memory.h"
#include "nn/parameters.h"
#include "train/optimizers/optimizer.h"

namespace ringlet::train {

class StepInputs {
 public:
  /// `table_rows`: of the table; 0: there is none.
  explicit StepInputs(Device& device, std::int64_t table_rows = 0);

  /// For the step whose launches follow. `divisor`: of the gradients, the samples of the whole
  /// world or what they weigh; `own_samples`: of this rank.
  /// `rates`: at least one row; of a table, the first rows, and the last of them is the newest
  /// where `skips` steps of the run were skipped (kernels/loss_scale.h).
  void upload(std::span<const StepRates> rates, std::int64_t skips, double divisor,
              std::int64_t own_samples, bool stop_wished);

  /// f32 [1]: 1 / divisor, where backward starts.
  View loss_seed() const { return at(kLossSeed, kRates); }
  /// f32 [16]: what the optimiser reads. Without a table, the first row of upload().
  View rates() const { return at(kRates, kLossSum); }
  /// f32 [1]: epochs before the step.
  ConstView epochs() const { return rates().slice(kEpochs, kEpochs + 1); }
  /// f32 [1] and [rows, 16]: for loss_scale_begin(), which writes rates().
  ConstView newest() const { return at(kNewest, kTable); }
  ConstView table() const;
  /// f32 [2]: those of them that may be written on the device, until the next upload(): the scale
  /// of the gradient, and that of the loss's own parameters.
  View gradient_scales() const { return numbers_.view().slice(kScale, kScale + 2); }
  /// f32 [1]: the first of them.
  View gradient_scale() const { return gradient_scales().slice(0, 1); }
  /// f32 [2]: own samples and the wish to stop, for the statistics.
  ConstView counts() const { return at(kCounts, kGradNorm); }
  /// All statistics of a step before it has a loss: 0, counts(), zeros.
  ConstView statistics() const { return at(kLossSum, kEnd); }

 private:
  enum Slot : std::int64_t {
    kLossSeed = 0,
    kRates = 1,
    kScale = kRates + kGradientScale,
    kLossSum = kRates + std::tuple_size_v<StepRates>,  // from here on in the order of the
                                                       // statistics (train_step.cc)
    kCounts = kLossSum + 1,
    kGradNorm = kLossSum + 3,
    kEnd = kLossSum + nn::Parameters::kStatistics,
    kNewest = kEnd,
    kTable = kNewest + 1
  };
  View at(Slot begin, Slot end) const { return numbers_.view().slice(begin, end); }

  Device& device_;
  std::int64_t table_rows_;
  Tensor numbers_;           // f32 [kTable + 16 * table_rows_]
  std::vector<float> host_;  // the same, to be sent
  Uploader uploader_;
};

}  // namespace ringlet::train
