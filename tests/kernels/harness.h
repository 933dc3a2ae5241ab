// Runs an operation in every layout and with every instruction set that this processor has, on one
// thread and on three. The results must be the same byte for byte. In a build with CUDA it also
// runs twice on the first GPU; where there is none, those tests are skipped and say why.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda_devices.h"
#include "kernels/device.h"
#include "tests/support/tensors.h"

namespace ringlet::test {

struct Setup {
  Layout layout;
  InstructionSet isa;
  DeviceKind device = DeviceKind::cpu;
};

inline std::string name_of(const ::testing::TestParamInfo<Setup>& info) {
  const Setup& setup = info.param;
  return std::string(ringlet::name_of(setup.layout)) + "_" +
         (setup.device == DeviceKind::cuda ? "cuda" : ringlet::name_of(setup.isa));
}

/// The setups on CUDA; none in a build without it. CMake chooses the file that defines this.
std::vector<Setup> cuda_setups();

/// `setups` and those of CUDA.
inline auto with_cuda(std::vector<Setup> setups) {
  for (const Setup& setup : cuda_setups()) setups.push_back(setup);
  return ::testing::ValuesIn(setups);
}

/// A layout with each instruction set that this program has.
inline std::vector<Setup> setups_of(Layout layout) {
  std::vector<Setup> setups;
  for (const InstructionSet isa : kInstructionSets) setups.push_back({layout, isa});
  return setups;
}

/// Of nchw: where loops go by the instruction set there, too, take setups_of(Layout::nchw). Matrix
/// products choose their instructions themselves.
inline std::vector<Setup> one_of_nchw() { return {{Layout::nchw, InstructionSet::automatic}}; }

/// Every layout (nhwc on CUDA alone), and in lanes every instruction set.
inline auto all_setups(std::vector<Setup> setups = one_of_nchw()) {
  for (const Setup& setup : setups_of(Layout::lanes)) setups.push_back(setup);
  return with_cuda(std::move(setups));
}

/// For operations that know no layout.
inline auto nchw_setups(std::vector<Setup> setups = one_of_nchw()) {
  for (const Setup& setup : cuda_setups()) {
    if (setup.layout == Layout::nchw) setups.push_back(setup);
  }
  return ::testing::ValuesIn(setups);
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

class OperationTest : public ::testing::TestWithParam<Setup> {
 protected:
  void SetUp() override {
    if (on_cuda()) {
      if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU: " << survey_cuda().why_none;
      for (int context = 0; context < 2; ++context) {
        devices_.push_back(open_device({DeviceKind::cuda, 0}, {.deterministic = true}));
      }
      return;
    }
    if (GetParam().isa != InstructionSet::automatic && GetParam().isa > detect_instruction_set()) {
      GTEST_SKIP() << "this processor has no " << ringlet::name_of(GetParam().isa);
    }
    for (const int threads : {1, 3}) {
      devices_.push_back(open_device({}, {threads, false, GetParam().isa}));
    }
  }

  Layout layout() const { return GetParam().layout; }
  /// There is an nhwc only of images.
  Layout layout_of(const Shape& shape) const {
    return layout() == Layout::nhwc && shape.rank() != 4 ? Layout::nchw : layout();
  }
  bool on_cuda() const { return GetParam().device == DeviceKind::cuda; }

  /// What `compute(device)` returns, the same on one thread and on three.
  template <class F>
  Tensor run(F compute) {
    Tensor one = compute(*devices_[0]);
    const Tensor other = compute(*devices_[1]);
    EXPECT_EQ(bytes_of(devices_[0]->compute(), one), bytes_of(devices_[1]->compute(), other))
        << "the bits differ from run to run, or with the number of threads";
    return one;
  }

  /// The elements of a tensor of the first device, as run() returns it.
  template <class T = float>
  std::vector<T> read(const ConstView& view) const {
    return test::read<T>(devices_[0]->compute(), view);
  }
  /// The same in the order of the memory, with the lanes beyond the batch.
  template <class T = float>
  std::vector<T> read_memory(const ConstView& view) const {
    return test::read_memory<T>(devices_[0]->compute(), view);
  }

  /// An input: the lanes beyond the batch hold garbage.
  Tensor input(Device& device, const Shape& shape, const std::vector<float>& values) const {
    return upload(device, shape, values, layout_of(shape), kGarbage);
  }
  /// A gradient: the lanes beyond the batch are zero.
  Tensor gradient(Device& device, const Shape& shape, const std::vector<float>& values) const {
    return upload(device, shape, values, layout_of(shape));
  }
  /// A gradient that will be blended with this beta; with 0, nothing of it may be looked at.
  Tensor old_tensor(Device& device, const Shape& shape, const std::vector<float>& values,
                    float beta) const {
    return upload(device, shape, values, layout_of(shape), beta == 0 ? kNaN : 0.0F);
  }
  /// A result that nobody has written: all NaN, or -1.
  Tensor output(Device& device, const Shape& shape, DType dtype = DType::f32) const {
    Tensor tensor(device, shape, dtype, layout_of(shape));
    const auto count = static_cast<std::size_t>(tensor.view().storage());
    if (dtype == DType::f32) {
      copy_from_host(device.compute(), std::vector<float>(count, kNaN).data(), tensor);
    } else {
      copy_from_host(device.compute(), std::vector<std::int32_t>(count, -1).data(), tensor);
    }
    return tensor;
  }

  void expect_close(const ConstView& actual, const std::vector<double>& expected,
                    double tolerance) const {
    EXPECT_LE(relative_l2(read(actual), expected), tolerance);
  }
  std::vector<float> padding(const ConstView& view) const {
    return padding_of(view, read_memory(view).data());
  }
  void expect_padding_finite(const ConstView& view) const {
    for (const float value : padding(view)) ASSERT_TRUE(std::isfinite(value));
  }
  void expect_padding_zero(const ConstView& view) const {
    for (const float value : padding(view)) ASSERT_EQ(value, 0.0F);
  }

  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace ringlet::test
