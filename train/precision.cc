#include "train/precision.h"

#include <fmt/format.h>

#include <array>

#include "kernels/conv2d.h"
#include "kernels/error.h"
#include "kernels/instruction_set.h"

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

Bf16Products bf16_products(bool emulate) {
  return emulate ? Bf16Products::none : detect_bf16_products(detect_instruction_set());
}

namespace {

/// Why a processor would compute so through f32; empty where it need not.
std::string why_through_f32(Precision precision, Layout layout,
                            const std::vector<nn::Parameter*>& parameters) {
  if (precision == Precision::f16) return "processors have no products of f16";
  const Bf16Products products = bf16_products(false);
  if (products == Bf16Products::none) return "it has neither AMX nor AVX512_BF16";
  if (layout != Layout::lanes) return "its products of bf16 want the layout lanes";
  for (const nn::Parameter* parameter : parameters) {
    if (multiplies_bf16(products, parameter->shape)) return "";
  }
  return "no convolution of this model has enough channels for its products of bf16";
}

}  // namespace

void require_precision(Precision precision, DeviceKind device, Layout layout,
                       const std::vector<nn::Parameter*>& parameters, bool emulate) {
  if (!is_narrow(precision) || device == DeviceKind::cuda || emulate) return;
  const std::string why = why_through_f32(precision, layout, parameters);
  if (why.empty()) return;
  throw ContractError(fmt::format(
      "--precision {} would be computed through f32 on this processor, slower than f32 ({}); leave "
      "it out, or add --emulate-precision to see what it does to the numbers",
      name_of(precision), why));
}

}  // namespace ringlet::train
