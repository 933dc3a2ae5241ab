#include "train/recipe/precision.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"

namespace ringlet::train {

namespace {

constexpr std::array kPrecisions{Precision::f32, Precision::tf32, Precision::bf16, Precision::f16};

}  // namespace

const char* name_of(Precision precision) {
  switch (precision) {
    case Precision::f32:
      return "f32";
    case Precision::tf32:
      return "tf32";
    case Precision::bf16:
      return "bf16";
    case Precision::f16:
      return "f16";
    case Precision::automatic:
      return kAutomaticPrecision;
  }
  return "?";
}

std::vector<std::string> precision_names() {
  std::vector<std::string> names;
  for (const Precision precision : kPrecisions) names.emplace_back(name_of(precision));
  return names;
}

Precision parse_precision(std::string_view name) {
  for (const Precision precision : kPrecisions) {
    if (name == name_of(precision)) return precision;
  }
  throw ContractError(fmt::format("'precision' is not {}", fmt::join(precision_names(), ", ")));
}

DType activations_of(Precision precision) {
  if (precision == Precision::bf16) return DType::bf16;
  return precision == Precision::f16 ? DType::f16 : DType::f32;
}

std::vector<Option<PrecisionSpec>> precision_options() {
  using Spec = PrecisionSpec;
  return {named_option<Spec>(
      "precision", [](const Spec& spec) { return name_of(spec.precision); },
      [](Spec& spec, const std::string& name) { spec.precision = parse_precision(name); },
      {.help = "of activations and products; all else is f32. f16 scales the loss",
       .choices = precision_names,
       .may_become = [](const OptionValue& own,
                        const OptionValue& given) {  // older states do not say tf32
         return text_of(own) == "f32" && text_of(given) == "tf32";
       }})};
}

}  // namespace ringlet::train
