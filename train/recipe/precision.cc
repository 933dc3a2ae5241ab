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

}  // namespace ringlet::train
