#include "nn/layers/fusion.h"

#include <typeinfo>
#include <utility>

#include "nn/layers/batch_norm2d.h"
#include "nn/layers/conv2d.h"
#include "nn/layers/linear.h"
#include "nn/layers/stateless.h"
#include "nn/ops/conv2d.h"
#include "nn/ops/conv2d_relu_avg_pool2d.h"
#include "nn/ops/linear.h"

namespace ringlet::nn {

namespace {

// A pattern returns its output, or an absent variable where it does not take this x.

Variable pooled_convolution(Tape& tape, const Variable& x, Conv2d& conv, ReLU&, AvgPool2d& pool) {
  if (conv.is_frozen_in_part()) return {};  // the filter's backward gives both gradients
  if (!fuses_conv2d_relu_avg_pool2d(x, conv.spec(), pool.spec())) return {};
  return conv2d_relu_avg_pool2d(x, conv.weight(tape), conv.bias(tape), conv.spec());
}

Variable flat_pooled_convolution(Tape& tape, const Variable& x, Conv2d& conv, ReLU&,
                                 AvgPool2d& pool, Flatten&) {
  const bool is_copied = x.layout() == Layout::nhwc;  // else the rows are there already
  if (!is_copied || !fuses_conv2d_relu_avg_pool2d(x, conv.spec(), pool.spec())) return {};
  return flat_conv2d_relu_avg_pool2d(x, conv.weight(tape), conv.bias(tape), conv.spec());
}

Variable rectified_convolution(Tape& tape, const Variable& x, Conv2d& conv, ReLU&) {
  return conv2d(x, conv.weight(tape), conv.bias(tape), conv.spec(), Activation::relu);
}

Variable rectified_linear(Tape& tape, const Variable& x, Linear& linear_layer, ReLU&) {
  return linear(x, linear_layer.weight(tape), linear_layer.bias(tape), Activation::relu);
}

Variable rectified_norm(Tape& tape, const Variable& x, BatchNorm2d& norm, ReLU&) {
  return norm.forward(tape, x, {}, Activation::relu);
}

/// Whether `layer` is an L, not something derived from it, whose forward may be another.
template <class L>
bool is(const Layer& layer) {
  return typeid(layer) == typeid(L);
}

template <class... Layers>
Fused run_on(Variable (*pattern)(Tape&, const Variable&, Layers&...), Tape& tape, const Variable& x,
             std::span<const Child> layers) {
  if (layers.size() < sizeof...(Layers)) return {};
  return [&]<std::size_t... I>(std::index_sequence<I...>)->Fused {
    if (!(is<Layers>(*layers[I].layer) && ...)) return {};
    const Variable y = pattern(tape, x, static_cast<Layers&>(*layers[I].layer)...);
    return {y, y.absent() ? 0 : sizeof...(Layers)};
  }
  (std::index_sequence_for<Layers...>());
}

/// `pattern` where the layers begin with those that it takes.
template <auto pattern>
Fused run(Tape& tape, const Variable& x, std::span<const Child> layers) {
  return run_on(pattern, tape, x, layers);
}

/// The longer ones first.
constexpr Fused (*kPatterns[])(Tape&, const Variable&, std::span<const Child>) = {
    run<flat_pooled_convolution>, run<pooled_convolution>, run<rectified_convolution>,
    run<rectified_linear>,        run<rectified_norm>,
};

}  // namespace

Fused fuse(Tape& tape, const Variable& x, std::span<const Child> layers) {
  for (const auto pattern : kPatterns) {
    const Fused fused = pattern(tape, x, layers);
    if (fused.layers > 0) return fused;
  }
  return {};
}

}  // namespace ringlet::nn
