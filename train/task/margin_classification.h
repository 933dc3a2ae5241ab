// Classification by the nearest of the classes' centres: what a model is trained for whose answer
// is an embedding (--loss arcface and the like). The centres are nn::ClassCentres'.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/margin_softmax.h"
#include "nn/layers/class_centres.h"
#include "train/recipe/margin_spec.h"
#include "train/task/task.h"

namespace ringlet::train {

class MarginClassification final : public Task {
 public:
  /// Throws ContractError as margin_of() does.
  explicit MarginClassification(const LossSpec& spec) : spec_(margin_of(spec)) {}

  std::string name() const override;
  /// `pass.model` is an nn::ClassCentres: the model's, or its last stage's.
  nn::Variable run_from(const nn::Variable& embedding, const TaskPass& pass) const override;
  bool loss_reads_samples() const override { return false; }
  MetricSpec metric() const override { return {2, DType::i32}; }
  void summarize(std::span<const double> counts, Evaluation& evaluation) const override;
  /// The mean angle to the own centre, without the margin, and to the nearest other, in degrees.
  std::vector<Figure> told_of_training(std::span<const double> sums) const override;

 private:
  MarginSpec spec_;
};

}  // namespace ringlet::train
