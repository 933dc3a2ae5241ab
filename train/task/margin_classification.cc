#include "train/task/margin_classification.h"

#include <numbers>

#include "base/unsigned_nan.h"
#include "nn/ops/margin_softmax.h"
#include "train/recipe/classification_spec.h"

namespace ringlet::train {

std::string MarginClassification::name() const { return kClassification; }

nn::Variable MarginClassification::run_from(const nn::Variable& embedding,
                                            const TaskPass& pass) const {
  const nn::Tape::Scope scope(pass.tape, kLossLayer);
  return nn::margin_softmax(embedding, dynamic_cast<nn::ClassCentres&>(pass.model).centres(),
                            pass.batch[nn::kTargets], spec_,
                            {.loss = pass.losses, .right = pass.numbers, .angles = pass.told});
}

void MarginClassification::summarize(std::span<const double> counts, Evaluation& evaluation) const {
  evaluation.right = static_cast<std::int64_t>(counts[0]);
  evaluation.without_length = static_cast<std::int64_t>(counts[1]);
  evaluation.numbers.clear();  // they are no classes'
}

std::vector<Figure> MarginClassification::told_of_training(std::span<const double> sums) const {
  constexpr double kDegrees = 180 / std::numbers::pi;
  return {{"target angle", unsigned_nan(sums[0] / sums[1] * kDegrees), "degrees"},
          {"nearest wrong angle", unsigned_nan(sums[2] / sums[3] * kDegrees), "degrees"}};
}

}  // namespace ringlet::train
