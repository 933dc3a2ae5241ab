// Narrow activations: each operation takes bf16 and f16, and gives what the same operation gives
// with the same numbers in f32, rounded once. On CUDA, whose sums are added in other orders, that
// is the same but for a last bit here and there.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#include "kernels/classify.h"
#include "kernels/cuda_devices.h"
#include "kernels/elementwise.h"
#include "kernels/narrow_floats.h"
#include "tests/kernels/operation_calls.h"
#include "tests/support/tensors.h"

namespace ringlet::test {
namespace {

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
