// The operations on activations, each as a call on random numbers: for tests that go through all of
// them.
#pragma once

#include <functional>
#include <vector>

#include "kernels/batch_norm.h"
#include "kernels/bias.h"
#include "kernels/concat.h"
#include "kernels/conv2d.h"
#include "kernels/conv2d_relu_avg_pool2d.h"
#include "kernels/dropout.h"
#include "kernels/elementwise.h"
#include "kernels/linear.h"
#include "kernels/pointwise_loss.h"
#include "kernels/pool2d.h"
#include "kernels/prelu.h"
#include "tests/reference/pointwise_loss.h"
#include "tests/support/tensors.h"

namespace ringlet::test {

inline const Shape kImages{18, 4, 6, 6};  // of lanes, one whole block and a part

/// Makes the tensors of an operation, as type `dtype` where they are activations or weights, and
/// keeps its results. With f32, the numbers are those of the narrow type.
class Call {
 public:
  Call(Device& device, Layout layout, DType narrow, DType dtype)
      : device_(device), layout_(layout), narrow_(narrow), dtype_(dtype) {}

  Stream& stream() const { return device_.compute(); }
  Layout layout() const { return layout_; }
  /// An activation with numbers of the narrow type.
  View in(const Shape& shape, std::uint32_t seed) { return number(shape, layout_of(shape), seed); }
  /// A weight.
  View weight(const Shape& shape, std::uint32_t seed) { return number(shape, Layout::nchw, seed); }
  /// A convolution's filters: in nhwc where images are.
  View filter(const Shape& shape, std::uint32_t seed) {
    return number(shape, layout_of_filters(), seed);
  }
  View filter_gradient(const Shape& shape, std::uint32_t seed) {
    return result(kept(random_tensor(device_, shape, seed, layout_of_filters())), seed);
  }
  /// f32 whatever the type: a bias, statistics.
  View f32(const Shape& shape, std::uint32_t seed) {
    return kept(random_tensor(device_, shape, seed));
  }
  /// f32 in the layout of an activation: targets.
  View f32_like(const View& x, std::uint32_t seed) {
    return kept(random_tensor(device_, x.shape(), seed, x.layout()));
  }
  /// What the operation writes; it holds numbers already, for beta.
  View out(const Shape& shape, std::uint32_t seed) { return result(in(shape, seed), seed); }
  View f32_out(const Shape& shape, std::uint32_t seed) { return result(f32(shape, seed), seed); }
  View other(const Shape& shape, DType dtype, Layout layout) {
    return kept(Tensor(device_, shape, dtype, layout));
  }

  std::vector<View> results;
  /// Of each result. Compilers evaluate arguments in orders of their own, so results lie in such.
  std::vector<std::uint32_t> seeds;

 private:
  View result(View view, std::uint32_t seed) {
    seeds.push_back(seed);
    return results.emplace_back(view);
  }
  /// There is an nhwc only of images.
  Layout layout_of(const Shape& shape) const {
    return layout_ == Layout::nhwc && shape.rank() != 4 ? Layout::nchw : layout_;
  }
  Layout layout_of_filters() const { return layout_ == Layout::nhwc ? Layout::nhwc : Layout::nchw; }
  View kept(Tensor tensor) {
    tensors_.push_back(std::move(tensor));
    return tensors_.back().view();
  }
  View number(const Shape& shape, Layout layout, std::uint32_t seed) {
    if (narrow_ == DType::f32) return kept(random_tensor(device_, shape, seed, layout));
    const Tensor wide = random_tensor(device_, shape, seed, layout);
    const View rounded = kept(Tensor(device_, shape, narrow_, layout));
    cast(stream(), wide, rounded);
    if (dtype_ == narrow_) return rounded;
    const View same = kept(Tensor(device_, shape, DType::f32, layout));
    cast(stream(), rounded, same);
    return same;
  }

  Device& device_;
  Layout layout_;
  DType narrow_, dtype_;
  std::vector<Tensor> tensors_;
};

struct Operation {
  const char* name;
  std::function<void(Call&)> call;
  bool lanes = true, nchw = true;
  /// On CUDA the product is rounded, and once more when something is added: to an old gradient by
  /// cuDNN in either layout, of a bias by ours in nchw, where cuDNN has no engine that adds it.
  bool rounds_twice_in_nhwc = false, rounds_twice_in_nchw = false;
};

inline const Conv2dSpec kPadded{.padding = {1, 1}};
inline const Shape kWeights{5, 4, 3, 3}, kResult{18, 5, 6, 6}, kPooled{18, 4, 3, 3};

inline std::vector<Operation> products() {
  return {
      {"conv2d_forward",
       [](Call& c) {
         conv2d_forward(c.stream(), kPadded, c.in(kImages, 1), c.filter(kWeights, 2), c.f32({5}, 3),
                        Activation::relu, c.out(kResult, 4));
       },
       true, true, false, true},
      {"conv2d_backward_data",
       [](Call& c) {
         conv2d_backward_data(c.stream(), kPadded, c.filter(kWeights, 2), c.in(kResult, 3), 1,
                              c.out(kImages, 1));
       },
       true, true, true, true},
      {"conv2d_backward_filter",
       [](Call& c) {
         conv2d_backward_filter(c.stream(), kPadded, c.in(kImages, 1), c.in(kResult, 2), 1,
                                c.filter_gradient(kWeights, 3));
       }},
      {"conv2d with row-major filters",
       [](Call& c) {
         const View x = c.in(kImages, 1), w = c.weight(kWeights, 2), dy = c.in(kResult, 3);
         conv2d_forward(c.stream(), kPadded, x, w, {}, Activation::none, c.out(kResult, 4));
         conv2d_backward_data(c.stream(), kPadded, w, dy, 0, c.out(kImages, 5));
         conv2d_backward_filter(c.stream(), kPadded, x, dy, 0.5F, c.f32_out(kWeights, 6));
       }},
      {"conv2d_relu_avg_pool2d",
       [](Call& c) {
         const Shape y{18, 5, 3, 3};
         const View x = c.in(kImages, 1), w = c.weight(kWeights, 2), dy = c.in(y, 4);
         const View mask = c.other(conv2d_relu_avg_pool2d_mask_shape(y), DType::u8, Layout::nchw);
         conv2d_relu_avg_pool2d_forward(c.stream(), kPadded, x, w, c.f32({5}, 3), c.out(y, 4),
                                        mask);
         conv2d_relu_avg_pool2d_backward_data(c.stream(), kPadded, w, dy, mask, 1,
                                              c.out(kImages, 5));
         conv2d_relu_avg_pool2d_backward_filter(c.stream(), kPadded, x, dy, mask, 0,
                                                c.f32_out(kWeights, 6), 1, c.f32_out({5}, 7));
       },
       true, false},
      {"linear",
       [](Call& c) {
         const View x = c.in({18, 7}, 1), w = c.weight({5, 7}, 2), dy = c.in({18, 5}, 3);
         linear_forward(c.stream(), x, w, c.f32({5}, 4), Activation::none, c.out({18, 5}, 5));
         linear_forward(c.stream(), x, w, c.f32({5}, 4), Activation::relu, c.out({18, 5}, 8));
         linear_forward(c.stream(), x, w, {}, Activation::relu, c.out({18, 5}, 9));
         linear_backward_data(c.stream(), w, dy, 0, c.out({18, 7}, 6));
         linear_backward_data(c.stream(), w, dy, 1, c.out({18, 7}, 10));
         linear_backward_weight(c.stream(), x, dy, 0, c.f32_out({5, 7}, 7));
         linear_backward_weight_bias(c.stream(), x, dy, 0, c.f32_out({5, 7}, 11), 0,
                                     c.f32_out({5}, 12));
       }},
  };
}

inline std::vector<Operation> passes() {
  return {
      {"bias_forward in place",
       [](Call& c) {
         const View x = c.out(kImages, 1);
         bias_forward(c.stream(), x, c.f32({4}, 2), x);
       }},
      {"bias_backward",
       [](Call& c) { bias_backward(c.stream(), c.in(kImages, 1), 1, c.f32_out({4}, 2)); }},
      {"prelu_forward",
       [](Call& c) {
         prelu_forward(c.stream(), c.in(kImages, 1), c.f32({4}, 2), c.out(kImages, 3));
       }},
      {"prelu_backward",
       [](Call& c) {
         prelu_backward(c.stream(), c.in(kImages, 1), c.f32({4}, 2), c.in(kImages, 3), 1,
                        c.out(kImages, 4), 0, c.f32_out({4}, 5));
       }},
      {"prelu_backward of one slope",
       [](Call& c) {
         prelu_backward(c.stream(), c.in(kImages, 1), c.f32({1}, 2), c.in(kImages, 3), 0,
                        c.out(kImages, 4), 1, c.f32_out({1}, 5));
       }},
      {"bias_relu_backward in place",
       [](Call& c) {
         const View dy = c.out(kImages, 1);
         bias_relu_backward(c.stream(), c.in(kImages, 2), dy, dy, 0, c.f32_out({4}, 3));
       }},
      {"bias_relu_avg_pool2d_backward",
       [](Call& c) {
         bias_relu_avg_pool2d_backward(c.stream(), c.in(kPooled, 1), c.out(kImages, 2), 0,
                                       c.f32_out({4}, 3));
       },
       false, true},
      {"relu",
       [](Call& c) {
         const View y = c.out(kImages, 1);
         relu_forward(c.stream(), y, y);
         relu_backward(c.stream(), y, c.in(kImages, 2), 1, c.out(kImages, 3));
       }},
      {"sigmoid and tanh",
       [](Call& c) {
         const View y = c.out(kImages, 1), z = c.out(kImages, 2);
         sigmoid_forward(c.stream(), y, y);
         sigmoid_backward(c.stream(), c.in(kImages, 3), c.in(kImages, 4), 1, c.out(kImages, 5));
         tanh_forward(c.stream(), z, z);
         tanh_backward(c.stream(), c.in(kImages, 3), c.in(kImages, 4), 0, c.out(kImages, 6));
       }},
      {"concat",
       [](Call& c) {
         const Shape both{18, 7, 6, 6};
         concat_forward(c.stream(), c.in(kImages, 1), 2, c.out(both, 2));
         concat_backward(c.stream(), c.in(both, 3), 2, 0.5F, c.out(kImages, 4));
       }},
      {"pointwise losses",
       [](Call& c) {
         const View p = c.in({18, 7}, 1), loss = c.f32_out({1}, 2), dloss = c.f32({1}, 3);
         const View targets = c.f32_like(p, 4);
         for (const auto kind : reference::kPointwiseLosses) {
           pointwise_loss_forward(c.stream(), kind, p, targets, loss);
           pointwise_loss_backward(c.stream(), kind, p, targets, dloss, 1, c.out({18, 7}, 5));
         }
       }},
      {"avg_pool2d",
       [](Call& c) {
         avg_pool2d_forward(c.stream(), {}, c.in(kImages, 1), c.out(kPooled, 2));
         avg_pool2d_backward(c.stream(), {}, c.in(kPooled, 3), 1, c.out(kImages, 4));
       }},
      {"max_pool2d",
       [](Call& c) {
         const View winner = c.other(kPooled, DType::i32, c.layout());
         max_pool2d_forward(c.stream(), {}, c.in(kImages, 1), c.out(kPooled, 2), winner);
         max_pool2d_backward(c.stream(), {}, c.in(kPooled, 3), winner, 0, c.out(kImages, 4));
       }},
      {"add and scale",
       [](Call& c) {
         add(c.stream(), c.in(kImages, 1), c.in(kImages, 2), c.out(kImages, 3));
         scale(c.stream(), 0.3F, c.in(kImages, 4), 1, c.out(kImages, 5));
       }},
      {"dropout",
       [](Call& c) {
         const DropoutSpec spec{.probability = 0.25F, .key = 7};
         dropout_forward(c.stream(), spec, c.in(kImages, 1), c.out(kImages, 2));
         dropout_backward(c.stream(), spec, c.in(kImages, 3), 1, c.out(kImages, 4));
       }},
      {"batch_norm_train_forward",
       [](Call& c) {
         const View moments = c.f32_out({2, 4}, 5);
         batch_norm_train_forward(c.stream(),
                                  {.activation = Activation::relu,
                                   .count = 18 * 36,
                                   .x = c.in(kImages, 1),
                                   .statistics = moments,
                                   .weight = c.f32({4}, 2),
                                   .bias = c.f32({4}, 3)},
                                  moments, c.in(kImages, 4), c.out(kImages, 6));
       }},
      {"batch_norm_backward",
       [](Call& c) {
         const View moments = c.f32_out({2, 4}, 5), x = c.in(kImages, 1), dy = c.out(kImages, 4);
         batch_norm_moments(c.stream(), x, moments);
         batch_norm_backward(
             c.stream(), {.count = 18 * 36, .x = x, .statistics = moments, .weight = c.f32({4}, 2)},
             {}, dy, {}, c.f32_out({2, 4}, 7), 1, c.out(kImages, 6));
       }},
      {"batch_norm_backward through a residual",
       [](Call& c) {
         const View moments = c.f32_out({2, 4}, 5), x = c.in(kImages, 1), dy = c.in(kImages, 4);
         const View y = c.out(kImages, 9);
         batch_norm_moments(c.stream(), x, moments);
         const BatchNorm norm{
             .activation = Activation::relu, .count = 18 * 36, .x = x, .statistics = moments};
         batch_norm_forward(c.stream(), norm, c.in(kImages, 8), y);
         batch_norm_backward_sums(c.stream(), norm, y, dy, c.out(kImages, 6), c.f32_out({2, 4}, 7));
       }},
  };
}

inline std::vector<Operation> operations() {
  std::vector<Operation> all = products();
  for (const Operation& operation : passes()) all.push_back(operation);
  return all;
}

}  // namespace ringlet::test
