// Runs an operation in every layout and with every instruction set that this processor has, on one
// thread and on three, whose results must be the same byte for byte.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "tests/support/tensors.h"

namespace ringlet::test {

struct Setup {
  Layout layout;
  InstructionSet isa;
};

inline std::string name_of(const testing::TestParamInfo<Setup>& info) {
  return std::string(ringlet::name_of(info.param.layout)) + "_" + ringlet::name_of(info.param.isa);
}

/// Matrix products in nchw choose their instructions themselves.
inline auto all_setups() {
  return testing::Values(Setup{Layout::nchw, InstructionSet::automatic},
                         Setup{Layout::lanes, InstructionSet::portable},
                         Setup{Layout::lanes, InstructionSet::avx2},
                         Setup{Layout::lanes, InstructionSet::avx512});
}

inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
/// What the lanes beyond the batch of an input hold: finite, and nothing that may reach a result.
inline constexpr float kGarbage = 1234.5F;

inline std::vector<double> to_double(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

/// beta * old + gradient; with beta = 0, `old` is NaN and not looked at.
inline std::vector<double> blended(float beta, const std::vector<float>& old,
                                   std::vector<double> gradient) {
  for (std::size_t i = 0; i < gradient.size() && beta != 0; ++i) {
    gradient[i] += static_cast<double>(beta) * static_cast<double>(old[i]);
  }
  return gradient;
}

/// What a gradient holds before it is written with this beta.
inline std::vector<float> old_gradient(std::int64_t count, float beta) {
  return beta == 0 ? std::vector<float>(static_cast<std::size_t>(count), kNaN)
                   : random_floats(count, 99);
}

class OperationTest : public testing::TestWithParam<Setup> {
 protected:
  void SetUp() override {
    if (GetParam().isa != InstructionSet::automatic && GetParam().isa > detect_instruction_set()) {
      GTEST_SKIP() << "this processor has no " << ringlet::name_of(GetParam().isa);
    }
    for (const int threads : {1, 3}) {
      devices_.push_back(open_device({}, {threads, false, GetParam().isa}));
    }
  }

  Layout layout() const { return GetParam().layout; }

  /// What `compute(device)` returns, the same on one thread and on three.
  template <class F>
  Tensor run(F compute) {
    Tensor one = compute(*devices_[0]);
    const Tensor three = compute(*devices_[1]);
    EXPECT_TRUE(same_bytes(one, three)) << "the bits depend on the number of threads";
    return one;
  }

  /// An input: the lanes beyond the batch hold garbage.
  Tensor input(Device& device, const Shape& shape, const std::vector<float>& values) const {
    return upload(device, shape, values, layout(), kGarbage);
  }
  /// A gradient: the lanes beyond the batch are zero.
  Tensor gradient(Device& device, const Shape& shape, const std::vector<float>& values) const {
    return upload(device, shape, values, layout());
  }
  /// A gradient that will be blended with this beta; with 0, nothing of it may be looked at.
  Tensor old_tensor(Device& device, const Shape& shape, const std::vector<float>& values,
                    float beta) const {
    return upload(device, shape, values, layout(), beta == 0 ? kNaN : 0.0F);
  }
  /// A result that nobody has written: all NaN, or -1.
  Tensor output(Device& device, const Shape& shape, DType dtype = DType::f32) const {
    Tensor tensor(device, shape, dtype, layout());
    for (std::int64_t i = 0; i < tensor.view().storage(); ++i) {
      if (dtype == DType::f32) {
        tensor.f32()[i] = kNaN;
      } else {
        tensor.view().as<std::int32_t>()[i] = -1;
      }
    }
    return tensor;
  }

  void expect_close(const ConstView& actual, const std::vector<double>& expected,
                    double tolerance) const {
    EXPECT_LE(relative_l2(read(actual), expected), tolerance);
  }
  void expect_padding_finite(const ConstView& view) const {
    for (const float value : read_padding(view)) ASSERT_TRUE(std::isfinite(value));
  }
  void expect_padding_zero(const ConstView& view) const {
    for (const float value : read_padding(view)) ASSERT_EQ(value, 0.0F);
  }

  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace ringlet::test
