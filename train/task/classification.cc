#include "train/task/classification.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/one_line.h"
#include "data/dataset.h"
#include "kernels/classify.h"
#include "nn/ops/softmax_cross_entropy.h"

namespace ringlet::train {

Classification::Classification(std::int64_t classes, const ClassificationSpec& spec,
                               std::vector<float> weights)
    : classes_(classes),
      smoothing_(static_cast<float>(spec.label_smoothing)),
      weights_(std::move(weights)) {
  if (weights_.empty()) return;
  require(std::ssize(weights_) == classes, "Classification", "there is a weight for each class");
  const double sum = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  mean_weight_ = static_cast<float>(sum / static_cast<double>(classes));
}

nn::Variable Classification::loss(const nn::Variable& logits, const nn::Batch& batch, bool training,
                                  const View& sum) const {
  const Shape& shape = logits.shape();
  if (shape.rank() == 2 && shape[1] != classes_) {
    throw ContractError(fmt::format(
        "Classification: the model has {} outputs, and there are {} classes; give its last layer "
        "as many (ModelInput::outputs)",
        shape[1], classes_));
  }
  const nn::Variable& labels = batch[nn::kTargets];
  if (!training) return nn::smoothed_cross_entropy(logits, labels, 0, sum);
  ClassWeights weights;
  if (!weights_.empty()) weights = {batch[nn::kConstants].value(), mean_weight_};
  return nn::smoothed_cross_entropy(logits, labels, smoothing_, sum, weights);
}

std::vector<float> Classification::weights(const data::Dataset& training) const {
  std::vector<float> weights;
  if (weights_.empty()) return weights;
  for (const std::int32_t label : training.targets()) {
    weights.push_back(weights_.at(static_cast<std::size_t>(label)));
  }
  return weights;
}

void Classification::measure(Stream& stream, const nn::Variable& logits, const nn::Batch& batch,
                             const View& counts) const {
  argmax_count(stream, logits.value(), batch[nn::kTargets].value(), counts);
}

void Classification::summarize(std::span<const double> counts, Evaluation& evaluation) const {
  double samples = 0, right = 0;
  for (std::size_t k = 0; k < counts.size(); k += 2) {
    samples += counts[k];
    right += counts[k + 1];
  }
  evaluation.right = static_cast<std::int64_t>(right);
  require(static_cast<std::int64_t>(samples) == evaluation.samples, "evaluation",
          "a sample was not counted once");
}

void require_classes(std::span<const std::int32_t> labels, std::int64_t classes) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= 0 && labels[i] < classes) continue;
    throw ContractError(
        fmt::format("Learner: label {} of sample {} is none of the model's classes 0 to {}",
                    labels[i], i, classes - 1));
  }
}

std::vector<ClassCount> class_counts(const Evaluation& evaluation) {
  std::vector<ClassCount> counts(evaluation.numbers.size() / 2);
  for (std::size_t k = 0; k < counts.size(); ++k) {
    counts[k] = {.samples = static_cast<std::int64_t>(evaluation.numbers[2 * k]),
                 .right = static_cast<std::int64_t>(evaluation.numbers[2 * k + 1])};
  }
  return counts;
}

void print_classes(std::FILE* out, const Evaluation& evaluation, std::span<const ClassCount> counts,
                   std::span<const std::string> class_names) {
  std::size_t width = 5;
  std::vector<std::string> names;
  for (const std::string& name : class_names) {
    if (counts.empty()) break;
    names.push_back(on_one_line(name));
    width = std::max(width, names.back().size());
  }
  if (!counts.empty()) fmt::print(out, "{:<{}}    right     of   accuracy\n", "class", width);
  for (std::size_t k = 0; k < counts.size(); ++k) {
    const ClassCount& count = counts[k];
    const std::string share =
        count.samples == 0 ? "-"
                           : fmt::format("{:.1f} %", 100.0 * static_cast<double>(count.right) /
                                                         static_cast<double>(count.samples));
    fmt::print(out, "{:<{}}   {:6}  {:5}   {:>8}\n", names[k], width, count.right, count.samples,
               share);
  }
  fmt::print(out, "{:<{}}   {:6}  {:5}   {:6.2f} %   loss {:.4f}\n", "all", width, evaluation.right,
             evaluation.samples, 100 * evaluation.accuracy(), evaluation.loss);
}

}  // namespace ringlet::train
