// Classification: images of classes, softmax cross-entropy, how many are right of each class.
#pragma once

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "train/recipe/classification_spec.h"
#include "train/task/task.h"

namespace ringlet::train {

class Classification final : public Task {
 public:
  /// `weights`: what each class counts in training, as torch.nn.CrossEntropyLoss(weight) has it;
  /// empty: all alike.
  explicit Classification(std::int64_t classes, const ClassificationSpec& spec = {},
                          std::vector<float> weights = {});

  std::string name() const override { return kClassification; }
  std::vector<float> constants() const override { return weights_; }
  std::vector<float> weights(const data::Dataset& training) const override;
  nn::Variable loss(const nn::Variable& logits, const nn::Batch& batch, bool training,
                    const View& sum) const override;
  bool loss_reads_samples() const override { return false; }
  MetricSpec metric() const override { return {2 * classes_, DType::i32}; }
  void measure(Stream& stream, const nn::Variable& logits, const nn::Batch& batch,
               const View& counts) const override;
  void summarize(std::span<const double> counts, Evaluation& evaluation) const override;

 private:
  std::int64_t classes_;
  float smoothing_;  // of the labels, in training
  std::vector<float> weights_;
  float mean_weight_ = 1;
};

/// Throws ContractError for a label beyond the classes: it would be looked for outside the memory
/// of the logits.
void require_classes(std::span<const std::int32_t> labels, std::int64_t classes);

/// Right answers of one class.
struct ClassCount {
  std::int64_t samples = 0;
  std::int64_t right = 0;
};

/// One a class of an evaluation of Classification.
std::vector<ClassCount> class_counts(const Evaluation& evaluation);

/// A row for each class, and one for the whole. A class without samples has no accuracy. Of counts
/// that are none, the row for the whole alone.
void print_classes(std::FILE* out, const Evaluation& evaluation, std::span<const ClassCount> counts,
                   std::span<const std::string> class_names);

}  // namespace ringlet::train
