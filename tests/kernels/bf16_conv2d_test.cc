// Convolutions in bf16 by the processor's own instructions, against sums in double of the same
// numbers. They may differ from the rounded sum where that lies near the middle of two numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/conv2d.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/lanes/bf16/bf16.h"
#include "kernels/elementwise.h"
#include "kernels/narrow_floats.h"
#include "tests/kernels/harness.h"
#include "tests/reference/bias.h"
#include "tests/reference/conv2d.h"
#include "tests/reference/elements.h"

namespace ringlet::test {
namespace {

struct Bf16Case {
  const char* name;
  Shape x, w;
  Conv2dSpec spec{};
};

/// Shapes that fill tiles, leave parts of them, and odd numbers of positions.
std::vector<Bf16Case> bf16_cases() {
  const Conv2dSpec padded{.padding = {1, 1}}, strided{.stride = {2, 2}, .padding = {1, 1}};
  return {
      {"3x3", {18, 32, 6, 6}, {32, 32, 3, 3}, padded},
      {"odd positions", {16, 32, 5, 7}, {16, 32, 3, 3}, padded},
      {"no padding", {16, 16, 7, 5}, {32, 16, 3, 3}},
      {"sixteen channels", {33, 16, 4, 4}, {16, 16, 3, 3}, padded},
      {"strided", {17, 32, 9, 8}, {48, 32, 3, 3}, strided},
      {"strided 1x1", {16, 32, 7, 6}, {64, 32, 1, 1}, {.stride = {2, 2}}},
      {"1x1", {5, 64, 3, 3}, {16, 64, 1, 1}},
      {"three channels", {16, 3, 8, 9}, {64, 3, 3, 3}, padded},
      {"7x7 strided", {16, 3, 15, 14}, {16, 3, 7, 7}, {.stride = {2, 2}, .padding = {3, 3}}},
      {"unequal strides", {16, 32, 8, 9}, {16, 32, 3, 3}, {.stride = {1, 3}, .padding = {0, 2}}},
      {"more padding than window", {16, 32, 2, 2}, {16, 32, 1, 1}, {.padding = {2, 1}}},
      {"bands", {16, 64, 40, 33}, {16, 64, 3, 3}, padded},
      {"many blocks", {70, 32, 3, 3}, {32, 32, 3, 3}, padded},
  };
}

/// Numbers of bf16.
std::vector<float> numbers(const Shape& shape, std::uint32_t seed) {
  std::vector<float> values = random_floats(shape.count(), seed);
  for (float& value : values) value = widen(to_bfloat16(value));
  return values;
}

class Bf16Conv2d : public ::testing::TestWithParam<Bf16Products> {
 protected:
  void SetUp() override {
    const Bf16Products best = detect_bf16_products(detect_instruction_set());
    if (GetParam() > best) GTEST_SKIP() << "this processor has no " << name_of(GetParam());
    for (const int threads : {1, 3}) {
      devices_.push_back(
          open_device({}, {.threads = threads, .overlap = false, .bf16 = GetParam()}));
    }
  }

  template <class F>
  void for_each_case(F f) {
    for (const Bf16Case& c : bf16_cases()) {
      SCOPED_TRACE(c.name);
      f(c, conv2d_output_shape(c.spec, c.x, c.w));
    }
  }

  /// What compute(device) writes, the same on one thread and on three, as f32.
  template <class F>
  std::vector<float> run(F compute) {
    const Tensor one = compute(*devices_[0]), other = compute(*devices_[1]);
    EXPECT_TRUE(same_bytes(one, other)) << "the bits depend on the number of threads";
    return wide(*devices_[0], one);
  }

  static Tensor upload_bf16(Device& device, const Shape& shape, const std::vector<float>& values,
                            Layout layout, float beyond = 0) {
    const Tensor f32 = upload(device, shape, values, layout, beyond);
    Tensor narrow(device, shape, DType::bf16, layout);
    cast(device.compute(), f32, narrow);
    return narrow;
  }

  static std::vector<float> wide(Device& device, const Tensor& tensor) {
    if (tensor.view().dtype() == DType::f32) return read(tensor);
    Tensor f32(device, tensor.view().shape(), DType::f32, tensor.view().layout());
    cast(device.compute(), tensor, f32);
    return read(f32);
  }

  static void expect_rounded(const std::vector<float>& actual, const std::vector<double>& exact) {
    ASSERT_EQ(actual.size(), exact.size());
    std::size_t others = 0;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const float rounded = widen(to_bfloat16(static_cast<float>(exact[i])));
      others += actual[i] != rounded ? 1 : 0;
      ASSERT_NEAR(actual[i], exact[i], std::abs(exact[i]) / 256 + 1e-5) << "at " << i;
    }
    EXPECT_LE(others, actual.size() / 100 + 1);
  }

  std::vector<std::unique_ptr<Device>> devices_;
};

TEST_P(Bf16Conv2d, Forward) {
  for_each_case([&](const Bf16Case& c, const Shape& y_shape) {
    const auto x = numbers(c.x, 1), w = numbers(c.w, 2), b = random_floats(c.w[0], 3);
    const auto product = reference::conv2d_forward(c.spec, c.x, c.w, to_double(x), to_double(w));
    const auto forward = [&](bool biased, Activation activation) {
      return run([&](Device& device) {
        const Tensor x_tensor = upload_bf16(device, c.x, x, Layout::lanes, kGarbage);
        const Tensor w_tensor = upload_bf16(device, c.w, w, Layout::nchw);
        EXPECT_TRUE(lanes::bf16::suits(static_cast<CpuStream&>(device.compute()), c.spec,
                                       x_tensor.view(), w_tensor.view()));
        const Tensor bias = upload(device, {c.w[0]}, b);
        Tensor y(device, y_shape, DType::bf16, Layout::lanes);
        conv2d_forward(device.compute(), c.spec, x_tensor, w_tensor,
                       biased ? ConstView(bias) : ConstView(), activation, y);
        return y;
      });
    };
    expect_rounded(forward(false, Activation::none), product);
    const auto sum = reference::bias_forward(y_shape, product, to_double(b));
    expect_rounded(forward(true, Activation::relu), reference::relu_forward(sum));
  });
}

TEST_P(Bf16Conv2d, BackwardData) {
  for_each_case([&](const Bf16Case& c, const Shape& y_shape) {
    const auto w = numbers(c.w, 2), dy = numbers(y_shape, 4), old = numbers(c.x, 5);
    const auto gradient =
        reference::conv2d_backward_data(c.spec, c.x, c.w, to_double(w), to_double(dy));
    for (const float beta : {0.0F, 1.0F}) {
      const auto dx = run([&](Device& device) {
        Tensor result = upload_bf16(device, c.x, beta == 0 ? old_gradient(c.x.count(), 0) : old,
                                    Layout::lanes, beta == 0 ? kNaN : 0);
        conv2d_backward_data(device.compute(), c.spec, upload_bf16(device, c.w, w, Layout::nchw),
                             upload_bf16(device, y_shape, dy, Layout::lanes), beta, result);
        return result;
      });
      expect_rounded(dx, blended(beta, old, gradient));
    }
  });
}

TEST_P(Bf16Conv2d, BackwardFilter) {
  for_each_case([&](const Bf16Case& c, const Shape& y_shape) {
    const auto x = numbers(c.x, 1), dy = numbers(y_shape, 4);
    const auto gradient =
        reference::conv2d_backward_filter(c.spec, c.x, c.w, to_double(x), to_double(dy));
    for (const float beta : {0.0F, 0.5F}) {
      const auto old = old_gradient(c.w.count(), beta);
      const auto dw = run([&](Device& device) {
        Tensor result = upload(device, c.w, old);
        conv2d_backward_filter(device.compute(), c.spec,
                               upload_bf16(device, c.x, x, Layout::lanes, kGarbage),
                               upload_bf16(device, y_shape, dy, Layout::lanes), beta, result);
        return result;
      });
      EXPECT_LE(relative_l2(dw, blended(beta, old, gradient)), 2e-6);
    }
  });
}

// A broken number reaches the positions that see it, and no other, in whatever tile they lie.
TEST_P(Bf16Conv2d, KeepsNaNToWhatSeesIt) {
  const Shape x_shape{16, 16, 5, 5}, w_shape{16, 16, 3, 3};
  const Conv2dSpec padded{.padding = {1, 1}};
  auto x = numbers(x_shape, 1);
  x[12] = kNaN;  // of the first sample's first channel, the middle
  const auto y = run([&](Device& device) {
    Tensor result(device, x_shape, DType::bf16, Layout::lanes);
    conv2d_forward(device.compute(), padded, upload_bf16(device, x_shape, x, Layout::lanes),
                   upload_bf16(device, w_shape, numbers(w_shape, 2), Layout::nchw), {},
                   Activation::relu, result);
    return result;
  });
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t row = i / 5 % 5, col = i % 5;
    const bool sees = i < 16 * 25 && row >= 1 && row <= 3 && col >= 1 && col <= 3;
    ASSERT_EQ(std::isnan(y[i]), sees) << "at " << i;
  }
}

TEST_P(Bf16Conv2d, AllocatesNothingOnceTheWorkspaceHasGrown) {
  const Shape shape{16, 16, 5, 5}, w_shape{16, 16, 3, 3};
  Device& device = *devices_[0];
  const Tensor x(device, shape, DType::bf16, Layout::lanes);
  const Tensor w(device, w_shape, DType::bf16), dw(device, w_shape);
  Tensor y(device, shape, DType::bf16, Layout::lanes);
  const auto run_all = [&] {
    const Conv2dSpec padded{.padding = {1, 1}};
    conv2d_forward(device.compute(), padded, x, w, {}, Activation::none, y);
    conv2d_backward_data(device.compute(), padded, w, x, 0, y);
    conv2d_backward_filter(device.compute(), padded, x, x, 0, dw);
  };
  run_all();
  const std::int64_t before = device.allocations();
  run_all();
  EXPECT_EQ(device.allocations(), before);
}

INSTANTIATE_TEST_SUITE_P(Products, Bf16Conv2d,
                         ::testing::Values(Bf16Products::vectors, Bf16Products::tiles),
                         [](const auto& tested) {
                           return std::string(tested.param == Bf16Products::tiles ? "amx"
                                                                                  : "avx512_bf16");
                         });

}  // namespace
}  // namespace ringlet::test
