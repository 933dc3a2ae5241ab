#include "nn/layers/conv2d.h"

#include <algorithm>

#include "base/error.h"
#include "nn/ops/conv2d.h"

namespace ringlet::nn {

namespace {

std::int64_t fan_in(const Conv2dOptions& options) {
  require(options.spec.groups >= 1, "Conv2d", "there is at least one group of channels");
  return std::int64_t{options.in_channels} / options.spec.groups * options.kernel.h *
         options.kernel.w;
}

}  // namespace

Conv2d::Conv2d(const Conv2dOptions& options)
    : Conv2d(options, Initializer::torch_default(fan_in(options)),
             Initializer::torch_default(fan_in(options))) {}

Conv2d::Conv2d(const Conv2dOptions& options, Initializer weight, Initializer bias)
    : options_(options),
      weight_({options.out_channels, options.in_channels / std::max(1, options.spec.groups),
               options.kernel.h, options.kernel.w},
              weight),
      bias_({options.out_channels}, bias) {
  require(options.spec.groups >= 1, "Conv2d", "there is at least one group of channels");
  weight_.is_filter = true;
}

Variable Conv2d::forward(Tape& tape, const Variable& x) {
  return conv2d(x, weight(tape), bias(tape), spec());
}

void Conv2d::register_in(Registry& registry, const std::string& prefix) {
  registry.add(weight_, prefix + "weight");
  if (options_.bias) registry.add(bias_, prefix + "bias");
}

}  // namespace ringlet::nn
