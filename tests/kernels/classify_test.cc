#include "kernels/classify.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/harness.h"
#include "tests/reference/classify.h"

namespace ringlet::test {
namespace {

class Classify : public OperationTest {
 protected:
  std::vector<std::int32_t> count(const Shape& shape, const std::vector<float>& logits,
                                  const std::vector<std::int32_t>& labels) {
    const std::vector<std::int32_t> zeros(static_cast<std::size_t>(2 * shape[1]));
    return read<std::int32_t>(run([&](Device& device) {
      Tensor result = upload(device, {2 * shape[1]}, zeros);
      argmax_count(device.compute(), input(device, shape, logits),
                   upload(device, {shape[0]}, labels), result);
      return result;
    }));
  }
};

TEST_P(Classify, AgreesWithTheReference) {
  for (const std::int64_t n : kBatches) {
    const Shape shape{n, 5};
    const auto logits = random_floats(shape.count(), 1);
    const auto labels = random_labels(n, 2, 5);
    EXPECT_EQ(count(shape, logits, labels), reference::argmax_count(5, logits, labels));
  }
}

TEST_P(Classify, TheFirstOfEqualLogitsWinsAndNaNNever) {
  using Counts = std::vector<std::int32_t>;
  EXPECT_EQ(count({1, 3}, {1, 1, 1}, {0}), (Counts{1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(count({1, 3}, {1, 1, 1}, {1}), (Counts{0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(count({1, 3}, {kNaN, -1, -2}, {1}), (Counts{0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(count({1, 3}, {-1, kNaN, -2}, {0}), (Counts{1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(count({1, 3}, {kNaN, kNaN, kNaN}, {0}), (Counts{1, 0, 0, 0, 0, 0}));
}

TEST_P(Classify, AddsToWhatWasCountedBefore) {
  Device& device = *devices_[0];
  const Tensor counts = upload<std::int32_t>(device, {4}, {10, 20, 30, 40});
  argmax_count(device.compute(), input(device, {2, 2}, {1, 0, 1, 0}),
               upload<std::int32_t>(device, {2}, {0, 1}), counts);
  EXPECT_EQ(read<std::int32_t>(counts), (std::vector<std::int32_t>{11, 21, 31, 40}));
}

TEST_P(Classify, RefusesALabelOutsideTheClasses) {
  if (on_cuda()) {  // cannot throw
    EXPECT_EQ(count({1, 2}, {0, 0}, {2}), (std::vector<std::int32_t>{0, 0, 0, 0}));
    return;
  }
  EXPECT_THROW((void)count({1, 2}, {0, 0}, {2}), ContractError);
}

TEST_P(Classify, CountsBrokenNumbers) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const std::int64_t n : {0, 1, 17, 3000}) {
    auto x = random_floats(n * 5, 1);
    std::int32_t expected = 0;
    for (std::size_t i = 0; i < x.size(); i += 7, ++expected) {
      x[i] = expected % 3 == 0 ? kNaN : expected % 3 == 1 ? infinity : -infinity;
    }
    const Tensor found = run([&](Device& device) {
      Tensor result = upload<std::int32_t>(device, {1}, {-5});
      count_nonfinite(device.compute(), input(device, {n, 5}, x), result);
      return result;
    });
    EXPECT_EQ(read<std::int32_t>(found), std::vector<std::int32_t>{expected});
  }
}

INSTANTIATE_TEST_SUITE_P(Setups, Classify, all_setups(), name_of);

}  // namespace
}  // namespace ringlet::test
