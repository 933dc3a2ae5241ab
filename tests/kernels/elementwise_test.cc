#include "kernels/elementwise.h"

#include <gtest/gtest.h>

#include "tests/kernels/harness.h"

namespace ringlet::test {
namespace {

/// Every stored element counts, the lanes beyond the batch too: the tests look at raw memory.
class Elementwise : public OperationTest {
 protected:
  /// Random in every stored element.
  Tensor stored(Device& device, const Shape& shape, std::uint32_t seed) const {
    Tensor tensor(device, shape, DType::f32, layout_of(shape));
    copy_from_host(device.compute(), random_floats(tensor.view().storage(), seed).data(), tensor);
    return tensor;
  }

  static std::vector<Shape> shapes() { return {{0, 3}, {1, 1}, {17, 5}, {33, 3, 11, 13}}; }
};

TEST_P(Elementwise, Fill) {
  for (const Shape& shape : shapes()) {
    const Tensor y = run([&](Device& device) {
      Tensor result = output(device, shape);
      fill(device.compute(), 2.5F, result);
      return result;
    });
    for (const float value : read_memory(y)) ASSERT_EQ(value, 2.5F);
    Tensor whole = output(*devices_[0], shape, DType::i32);
    fill(devices_[0]->compute(), 7, whole);
    for (const auto value : read<std::int32_t>(whole)) ASSERT_EQ(value, 7);
  }
}

TEST_P(Elementwise, Copy) {
  for (const Shape& shape : shapes()) {
    const Tensor y = run([&](Device& device) {
      Tensor result = output(device, shape);
      copy(device.compute(), stored(device, shape, 1), result);
      return result;
    });
    EXPECT_EQ(read_memory(y), read_memory(stored(*devices_[0], shape, 1)));
  }
  const std::vector<std::uint8_t> bytes = {1, 2, 255};
  const Tensor x = upload(*devices_[0], {3}, bytes);
  const Tensor y(*devices_[0], {3}, DType::u8);
  copy(devices_[0]->compute(), x, y);
  EXPECT_EQ(read<std::uint8_t>(y), bytes);
}

TEST_P(Elementwise, AccumulateAndAdd) {
  for (const Shape& shape : shapes()) {
    const auto a = read_memory(stored(*devices_[0], shape, 1));
    const auto b = read_memory(stored(*devices_[0], shape, 2));
    std::vector<float> sum(a.size());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = a[i] + b[i];
    const Tensor accumulated = run([&](Device& device) {
      Tensor y = stored(device, shape, 2);
      accumulate(device.compute(), stored(device, shape, 1), y);
      return y;
    });
    EXPECT_EQ(read_memory(accumulated), sum);
    for (const bool in_place : {false, true}) {
      const Tensor added = run([&](Device& device) {
        Tensor left = stored(device, shape, 1), y = output(device, shape);
        add(device.compute(), left, stored(device, shape, 2), in_place ? left : y);
        return in_place ? std::move(left) : std::move(y);
      });
      EXPECT_EQ(read_memory(added), sum);
    }
  }
}

TEST_P(Elementwise, Scale) {
  for (const Shape& shape : shapes()) {
    for (const float beta : {0.0F, 1.0F, 0.5F}) {
      const auto x = read_memory(stored(*devices_[0], shape, 1));
      const auto old = read_memory(stored(*devices_[0], shape, 2));
      const Tensor y = run([&](Device& device) {
        Tensor result = beta == 0 ? output(device, shape) : stored(device, shape, 2);
        scale(device.compute(), 3, stored(device, shape, 1), beta, result);
        return result;
      });
      std::vector<double> expected(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) expected[i] = 3.0 * x[i] + 1.0 * beta * old[i];
      EXPECT_LE(relative_l2(read_memory(y), expected), 1e-7);
    }
    Tensor in_place = stored(*devices_[0], shape, 1);
    const auto x = read_memory(in_place);
    scale(devices_[0]->compute(), 2, in_place, 0, in_place);
    const auto doubled = read_memory(in_place);
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(doubled[i], 2 * x[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Setups, Elementwise, all_setups(), name_of);

}  // namespace
}  // namespace ringlet::test
