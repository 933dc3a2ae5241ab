#include "train/recipe/classification_spec.h"

#include <fmt/format.h>

namespace ringlet::train {

std::vector<Option<ClassificationSpec>> classification_options() {
  return {option("label_smoothing", &ClassificationSpec::label_smoothing,
                 {.help = "share of each label that all classes get alike, in training",
                  .range = from(0).below(1),
                  .task = "classification"})};
}

std::string in_words(const ClassificationSpec& spec) {
  return spec.label_smoothing > 0 ? fmt::format(", label smoothing {:g}", spec.label_smoothing)
                                  : "";
}

}  // namespace ringlet::train
