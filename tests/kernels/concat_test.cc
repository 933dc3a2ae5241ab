#include "kernels/concat.h"

#include <gtest/gtest.h>

#include "kernels/elementwise.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/harness.h"
#include "tests/reference/elements.h"

namespace ringlet::test {
namespace {

class Concat : public OperationTest {};

/// Two tensors of a and b channels.
struct Two {
  Shape a, b, both;
};

std::vector<Two> pairs(std::int64_t n) {
  return {{{n, 3}, {n, 5}, {n, 8}},
          {{n, 1}, {n, 70}, {n, 71}},
          {{n, 2, 3, 4}, {n, 3, 3, 4}, {n, 5, 3, 4}},
          {{n, 4, 1, 1}, {n, 1, 1, 1}, {n, 5, 1, 1}}};
}

TEST_P(Concat, PutsTensorsSideBySide) {
  for (const std::int64_t n : kBatches) {
    for (const auto& [a, b, both] : pairs(n)) {
      SCOPED_TRACE(both.to_string());
      const auto left = random_floats(a.count(), 1), right = random_floats(b.count(), 2);
      const std::int64_t image = both.rank() == 4 ? both[2] * both[3] : 1;
      std::vector<float> expected(static_cast<std::size_t>(both.count()));
      reference::concat_forward(a[1] * image, left, 0, both[1] * image, expected);
      reference::concat_forward(b[1] * image, right, a[1] * image, both[1] * image, expected);
      const Tensor y = run([&, &a = a, &b = b, &both = both](Device& device) {
        Tensor result = output(device, both);
        concat_forward(device.compute(), input(device, a, left), 0, result);
        concat_forward(device.compute(), input(device, b, right), a[1], result);
        return result;
      });
      EXPECT_EQ(read(y), expected);
      expect_padding_finite(y);
    }
  }
}

TEST_P(Concat, GivesEachItsGradient) {
  for (const std::int64_t n : kFewBatches) {
    for (const auto& [a, b, both] : pairs(n)) {
      SCOPED_TRACE(both.to_string());
      const std::int64_t image = both.rank() == 4 ? both[2] * both[3] : 1;
      const auto dy = random_floats(both.count(), 1);
      const auto expected =
          reference::concat_backward(b[1] * image, n, a[1] * image, both[1] * image, to_double(dy));
      for (const float beta : kBetas) {
        const auto old = old_gradient(b.count(), beta);
        const Tensor dx = run([&, &a = a, &b = b, &both = both](Device& device) {
          Tensor result = old_tensor(device, b, old, beta);
          concat_backward(device.compute(), gradient(device, both, dy), a[1], beta, result);
          return result;
        });
        expect_close(dx, blended(beta, old, expected), 1e-7);
        expect_padding_zero(dx);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Setups, Concat, all_setups(), name_of);

}  // namespace
}  // namespace ringlet::test
