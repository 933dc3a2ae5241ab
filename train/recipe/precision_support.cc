#include "train/recipe/precision_support.h"

#include <fmt/format.h>

#include <string>

#include "base/error.h"
#include "kernels/conv2d.h"

namespace ringlet::train {

Bf16Products bf16_products(bool emulate) {
  return emulate ? Bf16Products::none : detect_bf16_products(detect_instruction_set());
}

std::string why_through_f32(Precision precision, DeviceKind device, Layout layout,
                            const std::vector<nn::Parameter*>& parameters, bool emulate) {
  if (!is_narrow(precision) || device == DeviceKind::cuda || emulate) return "";
  if (precision == Precision::f16) return "processors have no products of f16";
  const Bf16Products products = bf16_products(false);
  if (products == Bf16Products::none) return "it has neither AMX nor AVX512_BF16";
  if (layout != Layout::lanes)
    return "its products of bf16 want the layout lanes, 16 samples a pass";
  for (const nn::Parameter* parameter : parameters) {
    if (multiplies_bf16(products, parameter->shape)) return "";
  }
  return "no convolution of this model has enough channels for its products of bf16";
}

void require_precision(Precision precision, DeviceKind device, Layout layout,
                       const std::vector<nn::Parameter*>& parameters, bool emulate) {
  const std::string why = why_through_f32(precision, device, layout, parameters, emulate);
  if (why.empty()) return;
  throw ContractError(fmt::format(
      "--precision {} would be computed through f32 on this processor, slower than f32 ({}); leave "
      "it out, or add --emulate-precision to see what it does to the numbers",
      name_of(precision), why));
}

}  // namespace ringlet::train
