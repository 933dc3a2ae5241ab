// What classification has besides logits and labels. Its loss is train/task/classification.h.
#pragma once

#include <string>
#include <vector>

#include "train/recipe/option.h"

namespace ringlet::train {

/// The task's name.
inline constexpr const char* kClassification = "classification";

inline constexpr const char* kEqualWeights = "equal";

struct ClassificationSpec {
  double label_smoothing = 0;  ///< of the loss that is trained on
  /// Of classes, in that loss; see class_weights(), train/task/class_weights.h.
  std::string class_weights = kEqualWeights;

  bool operator==(const ClassificationSpec&) const = default;
};

std::vector<Option<ClassificationSpec>> classification_options();

/// What is not as usual, behind a comma each.
std::string in_words(const ClassificationSpec& spec);

}  // namespace ringlet::train
