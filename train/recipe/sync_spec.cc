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

std::vector<Option<BucketSpec>> bucket_options() {
  return {option("bucket_kb", &BucketSpec::bucket_kb,
                 {.help = "KiB of gradients that are summed at once; 0: each parameter by itself",
                  .range = from(0),
                  .default_in_words = "1024; between machines an eighth of all, 64 to 1024; on "
                                      "GPUs 25600",
                  .open_below_zero = true}),
          option("first_bucket_kb", &BucketSpec::first_bucket_kb,
                 {.help = "the same for the first bucket, so that it can start earlier",
                  .range = from(0),
                  .default_in_words = "--bucket-kb; on GPUs 1024 where that is not given",
                  .open_below_zero = true})};
}

}  // namespace ringlet::train
