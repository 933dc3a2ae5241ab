// Classification: images of classes, softmax cross-entropy, how many are right of each class.
#pragma once

#include "train/task/task.h"

namespace ringlet::train {

class Classification final : public Task {
 public:
  /// `smoothing`: of the labels, in training.
  explicit Classification(std::int64_t classes, double smoothing = 0)
      : classes_(classes), smoothing_(static_cast<float>(smoothing)) {}

  nn::Variable loss(const nn::Variable& logits, const nn::Batch& batch, bool training,
                    const View& sum) const override;
  MetricSpec metric() const override { return {2 * classes_, DType::i32}; }
  void measure(Stream& stream, const nn::Variable& logits, const nn::Batch& batch,
               const View& counts) const override;
  void summarize(std::span<const double> counts, Evaluation& evaluation) const override;

 private:
  std::int64_t classes_;
  float smoothing_;
};

}  // namespace ringlet::train
