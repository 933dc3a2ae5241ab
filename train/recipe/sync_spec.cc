#include "train/recipe/sync_spec.h"

#include <array>
#include <stdexcept>

namespace ringlet::train {

namespace {

constexpr std::array kSpecs{GradientSpec{DType::f32, false}, GradientSpec{DType::f16, false},
                            GradientSpec{DType::bf16, false}, GradientSpec{DType::bf16, true}};

std::vector<std::string> grad_dtype_names() {
  std::vector<std::string> names;
  for (const GradientSpec& spec : kSpecs) names.push_back(grad_dtype_name(spec));
  return names;
}

void set_grad_dtype(GradientSpec& spec, const std::string& name) {
  for (const GradientSpec& known : kSpecs) {
    if (name != grad_dtype_name(known)) continue;
    spec = known;
    return;
  }
  throw std::runtime_error("'grad_dtype' is not f32, f16, bf16 or bf16-between");
}

}  // namespace

std::string grad_dtype_name(const GradientSpec& spec) {
  return std::string(name_of(spec.grad_dtype)) + (spec.narrow_between ? "-between" : "");
}

std::vector<Option<GradientSpec>> gradient_options() {
  return {named_option<GradientSpec>(
      "grad_dtype", grad_dtype_name, set_grad_dtype,
      {.help = "type in which gradients travel; f16 and bf16 halve the bytes and round the sums; "
               "bf16-between does so between machines only",
       .choices = grad_dtype_names,
       .since_first_states = true})};
}

}  // namespace ringlet::train
