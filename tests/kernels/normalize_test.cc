#include "kernels/normalize.h"

#include <gtest/gtest.h>

#include "tests/kernels/cases.h"
#include "tests/kernels/harness.h"
#include "tests/reference/elements.h"

namespace ringlet::test {
namespace {

class Normalize : public OperationTest {};

std::vector<std::uint8_t> random_bytes(std::int64_t count) {
  std::vector<std::uint8_t> bytes;
  for (const auto value : random_labels(count, 1, 256)) {
    bytes.push_back(static_cast<std::uint8_t>(value));
  }
  return bytes;
}

TEST_P(Normalize, AgreesWithTheReference) {
  for (const std::int64_t n : kBatches) {
    const Shape shape{n, 2, 3, 5};
    const auto x = random_bytes(shape.count());
    for (const Normalization& normalization : {Normalization{}, Normalization{0.286F, 0.353F}}) {
      const Tensor y = run([&](Device& device) {
        Tensor result = output(device, shape);
        normalize_forward(device.compute(), normalization, upload(device, shape, x), result);
        return result;
      });
      EXPECT_EQ(read(y), reference::normalize_forward<float>(normalization, x));
      expect_padding_zero(y);
    }
  }
}

TEST_P(Normalize, RelayoutGoesToAndFro) {
  for (const std::int64_t n : kBatches) {
    for (const Shape& sample : {Shape{1, 7}, Shape{1, 2, 3, 5}, Shape{1, 33, 8, 9}}) {
      const Shape shape = sample.with_batch(n);
      const auto x = random_floats(shape.count(), 1);
      for (const Layout to : {Layout::nchw, Layout::lanes, Layout::nhwc}) {
        if (to == (on_cuda() ? Layout::lanes : Layout::nhwc)) continue;
        if (to == Layout::nhwc && shape.rank() != 4) continue;
        const Tensor y = run([&](Device& device) {
          Tensor result(device, shape, DType::f32, to);
          relayout(device.compute(), input(device, shape, x), result);
          return result;
        });
        EXPECT_EQ(read(y), x);
        expect_padding_zero(y);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Setups, Normalize, all_setups(), name_of);

}  // namespace
}  // namespace ringlet::test
