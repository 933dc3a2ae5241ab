#include "train/recipe/classification_spec.h"

#include <fmt/format.h>

#include "base/one_line.h"

namespace ringlet::train {

std::vector<Option<ClassificationSpec>> classification_options() {
  return {option("label_smoothing", &ClassificationSpec::label_smoothing,
                 {.help = "share of each label that all classes get alike, in training",
                  .range = from(0).below(1),
                  .for_photographs = "0.1",
                  .task = kClassification,
                  .only = {.key = "loss", .values = {"softmax"}}}),
          option("class_weights", &ClassificationSpec::class_weights,
                 {.help = "what a sample of each class counts, in training; balanced: the less the "
                          "more samples the class has",
                  .task = kClassification,
                  .value_name = "equal|balanced|W,W,...",
                  .only = {.key = "loss", .values = {"softmax"}}})};
}

std::string in_words(const ClassificationSpec& spec) {
  constexpr std::size_t kShown = 40;
  std::string words;
  if (spec.label_smoothing > 0)
    words += fmt::format(", label smoothing {:g}", spec.label_smoothing);
  if (spec.class_weights != kEqualWeights) {
    words += ", class weights " + on_one_line(spec.class_weights, kShown);
  }
  return words;
}

}  // namespace ringlet::train
