#include "train/task/classification.h"

#include "kernels/classify.h"
#include "nn/ops/softmax_cross_entropy.h"

namespace ringlet::train {

nn::Variable Classification::loss(const nn::Variable& logits, const nn::Batch& batch, bool training,
                                  const View& sum) const {
  return nn::smoothed_cross_entropy(logits, batch[nn::kTargets], training ? smoothing_ : 0, sum);
}

void Classification::measure(Stream& stream, const nn::Variable& logits, const nn::Batch& batch,
                             const View& counts) const {
  argmax_count(stream, logits.value(), batch[nn::kTargets].value(), counts);
}

void Classification::summarize(std::span<const double> counts, Evaluation& evaluation) const {
  std::int64_t samples = 0;
  for (std::size_t k = 0; k < counts.size(); k += 2) {
    const ClassCount count{static_cast<std::int64_t>(counts[k]),
                           static_cast<std::int64_t>(counts[k + 1])};
    evaluation.classes.push_back(count);
    samples += count.samples;
    evaluation.right += count.right;
  }
  require(samples == evaluation.samples, "evaluation", "a sample was not counted once");
}

}  // namespace ringlet::train
