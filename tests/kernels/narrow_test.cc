// Narrow activations: each operation takes bf16 and f16, and gives what the same operation gives
// with the same numbers in f32, rounded once. On CUDA, whose sums are added in other orders, that
// is the same but for a last bit here and there.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <vector>

#include "kernels/batch_norm.h"
#include "kernels/bias.h"
#include "kernels/classify.h"
#include "kernels/concat.h"
#include "kernels/conv2d.h"
#include "kernels/conv2d_relu_avg_pool2d.h"
#include "kernels/cuda_devices.h"
#include "kernels/dropout.h"
#include "kernels/elementwise.h"
#include "kernels/linear.h"
#include "kernels/narrow_floats.h"
#include "kernels/pointwise_loss.h"
#include "kernels/pool2d.h"
#include "kernels/prelu.h"
#include "tests/reference/pointwise_loss.h"
#include "tests/support/tensors.h"

namespace ringlet::test {
namespace {

const Shape kImages{18, 4, 6, 6};  // of lanes, one whole block and a part

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
    results.push_back(kept(random_tensor(device_, shape, seed, layout_of_filters())));
    return results.back();
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
  View out(const Shape& shape, std::uint32_t seed) {
    results.push_back(in(shape, seed));
    return results.back();
  }
  View f32_out(const Shape& shape, std::uint32_t seed) {
    results.push_back(f32(shape, seed));
    return results.back();
  }
  View other(const Shape& shape, DType dtype, Layout layout) {
    return kept(Tensor(device_, shape, dtype, layout));
  }

  std::vector<View> results;

 private:
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

const Conv2dSpec kPadded{.padding = {1, 1}};
const Shape kWeights{5, 4, 3, 3}, kResult{18, 5, 6, 6}, kPooled{18, 4, 3, 3};

std::vector<Operation> products() {
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

std::vector<Operation> passes() {
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
         batch_norm_moments(c.stream(), x, moments);
         const BatchNorm norm{
             .activation = Activation::relu, .count = 18 * 36, .x = x, .statistics = moments};
         batch_norm_forward(c.stream(), norm, c.in(kImages, 8), c.out(kImages, 9));
         batch_norm_backward_sums(c.stream(), norm, c.results.back(), dy, c.out(kImages, 6),
                                  c.f32_out({2, 4}, 7));
       }},
  };
}

std::vector<Operation> operations() {
  std::vector<Operation> all = products();
  for (const Operation& operation : passes()) all.push_back(operation);
  return all;
}

struct Kind {
  Layout layout;
  DType dtype;
};

class Narrow : public ::testing::TestWithParam<Kind> {
 protected:
  std::vector<Operation> mine() const {
    std::vector<Operation> found;
    for (const Operation& operation : operations()) {
      if (GetParam().layout == Layout::lanes ? operation.lanes : operation.nchw) {
        found.push_back(operation);
      }
    }
    return found;
  }
};

/// `view` as f32 where it is narrow.
Tensor copy_in_f32(Device& device, const View& view) {
  Tensor wide(device, view.shape(), DType::f32, view.layout());
  if (is_narrow(view.dtype())) {
    cast(device.compute(), view, wide);
  } else {
    copy(device.compute(), view, wide);
  }
  return wide;
}

TEST_P(Narrow, IsTheSameOperationInF32RoundedOnce) {
  const auto [layout, dtype] = GetParam();
  for (const int threads : {1, 3}) {
    const auto device = open_device({}, {.threads = threads, .overlap = false});
    for (const Operation& operation : mine()) {
      SCOPED_TRACE(operation.name);
      Call narrow(*device, layout, dtype, dtype), wide(*device, layout, dtype, DType::f32);
      operation.call(narrow);
      operation.call(wide);
      ASSERT_EQ(narrow.results.size(), wide.results.size());
      for (std::size_t i = 0; i < narrow.results.size(); ++i) {
        const View& result = narrow.results[i];
        const Tensor expected = copy_in_f32(*device, wide.results[i]);
        if (is_narrow(result.dtype())) {
          const Tensor rounded(*device, result.shape(), dtype, layout);
          cast(device->compute(), expected, rounded);
          EXPECT_TRUE(same_bytes(result, rounded)) << "result " << i;
        } else {
          EXPECT_TRUE(same_bytes(result, expected)) << "result " << i;
        }
      }
    }
  }
}

TEST_P(Narrow, NothingIsAllocatedOnceTheScratchHasGrown) {
  const auto [layout, dtype] = GetParam();
  const auto device = open_device({}, {.threads = 1, .overlap = false});
  const Tensor x(*device, kImages, dtype, layout), y(*device, kImages, dtype, layout);
  const auto run = [&] { relu_backward(device->compute(), x, x, 1, y); };
  run();
  const std::int64_t before = device->allocations();
  run();
  EXPECT_EQ(device->allocations(), before);
}

TEST_P(Narrow, BrokenNumbersAreCounted) {
  const auto [layout, dtype] = GetParam();
  const auto device = open_device({}, {.threads = 1, .overlap = false});
  std::vector<float> values(40, 1.0F);
  values[3] = INFINITY;
  values[21] = NAN;
  const Tensor wide = upload(*device, {20, 2}, values, layout), x(*device, {20, 2}, dtype, layout);
  cast(device->compute(), wide, x);
  const Tensor count(*device, {1}, DType::i32);
  count_nonfinite(device->compute(), x, count);
  EXPECT_EQ(read<std::int32_t>(count), std::vector<std::int32_t>{2});
}

/// The same on the first GPU, beside the CPU's.
class NarrowOnCuda : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU: " << survey_cuda().why_none;
  }
};

/// Steps between two narrow numbers.
int steps_apart(DType dtype, float a, float b) {
  const auto ordinal = [&](float x) {
    const int bits = dtype == DType::bf16 ? to_bfloat16(x).bits : to_half(x).bits;
    return (bits & 0x8000) != 0 ? -(bits & 0x7FFF) : bits;
  };
  return std::abs(ordinal(a) - ordinal(b));
}

TEST_P(NarrowOnCuda, IsTheSameOperationRoundedOnce) {
  const auto [layout, dtype] = GetParam();
  const auto cpu = open_device({}, {.threads = 1, .overlap = false});
  const auto gpu = open_device({DeviceKind::cuda, 0}, {.deterministic = true});
  for (const Operation& operation : operations()) {
    if (!operation.nchw) continue;
    SCOPED_TRACE(operation.name);
    Call narrow(*gpu, layout, dtype, dtype), wide(*cpu, Layout::nchw, dtype, DType::f32);
    operation.call(narrow);
    operation.call(wide);
    ASSERT_EQ(narrow.results.size(), wide.results.size());
    for (std::size_t i = 0; i < narrow.results.size(); ++i) {
      const View& result = narrow.results[i];
      const std::vector<float> found = read(gpu->compute(), copy_in_f32(*gpu, result));
      const std::vector<float> expected = read(cpu->compute(), wide.results[i]);
      if (!is_narrow(result.dtype())) {
        EXPECT_LE(relative_l2(found, expected), 1e-5) << "result " << i;
        continue;
      }
      if (layout == Layout::nhwc ? operation.rounds_twice_in_nhwc
                                 : operation.rounds_twice_in_nchw) {
        EXPECT_LE(relative_l2(found, expected), dtype == DType::bf16 ? 0x1p-8 : 0x1p-11) << i;
        continue;
      }
      std::size_t apart = 0;
      for (std::size_t k = 0; k < found.size(); ++k) {
        const int steps = steps_apart(dtype, found[k], expected[k]);
        ASSERT_LE(steps, std::abs(expected[k]) < 1e-2F ? 16 : 1) << expected[k];
        apart += steps > 0 ? 1 : 0;
      }
      EXPECT_LE(apart, found.size() / 50) << "result " << i;
    }
  }
}

TEST_P(NarrowOnCuda, BrokenNumbersAreCountedAndCome) {
  const auto [layout, dtype] = GetParam();
  const auto gpu = open_device({DeviceKind::cuda, 0}, {});
  Stream& stream = gpu->compute();
  const Shape shape{2, 8, 2, 5};
  std::vector<float> values(static_cast<std::size_t>(shape.count()), 1.0F);
  values[3] = INFINITY;
  values[21] = NAN;
  values[22] = 1e-30F;
  const Tensor x(*gpu, shape, dtype, layout), y(*gpu, shape, dtype, layout);
  cast(stream, upload(*gpu, shape, values, layout), x);
  relu_forward(stream, x, y);
  const Tensor count(*gpu, {1}, DType::i32);
  count_nonfinite(stream, y, count);
  EXPECT_EQ(read<std::int32_t>(stream, count), std::vector<std::int32_t>{2});
  const auto back = read(stream, copy_in_f32(*gpu, y));
  EXPECT_TRUE(std::isinf(back[3]));
  EXPECT_TRUE(std::isnan(back[21]));
  EXPECT_EQ(back[22], dtype == DType::bf16 ? widen(to_bfloat16(1e-30F)) : 0.0F);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, NarrowOnCuda,
    ::testing::Values(Kind{Layout::nchw, DType::bf16}, Kind{Layout::nhwc, DType::bf16},
                      Kind{Layout::nchw, DType::f16}, Kind{Layout::nhwc, DType::f16}),
    [](const auto& tested) {
      return std::string(name_of(tested.param.layout)) + "_" + name_of(tested.param.dtype);
    });

INSTANTIATE_TEST_SUITE_P(
    Kinds, Narrow,
    ::testing::Values(Kind{Layout::nchw, DType::bf16}, Kind{Layout::lanes, DType::bf16},
                      Kind{Layout::nchw, DType::f16}, Kind{Layout::lanes, DType::f16}),
    [](const auto& tested) {
      return std::string(name_of(tested.param.layout)) + "_" + name_of(tested.param.dtype);
    });

}  // namespace
}  // namespace ringlet::test
