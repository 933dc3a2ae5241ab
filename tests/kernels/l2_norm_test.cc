#include "kernels/l2_norm.h"

#include <gtest/gtest.h>

#include "kernels/reference/elements.h"
#include "tests/kernels/harness.h"

namespace ringlet::test {
namespace {

class L2Norm : public OperationTest {
 protected:
  float norm_of(const std::vector<float>& values) {
    const auto count = static_cast<std::int64_t>(values.size());
    const Tensor norm = run([&](Device& device) {
      Tensor result = output(device, {1});
      l2_norm(device.compute(), upload(device, {count}, values), result);
      return result;
    });
    return read(norm)[0];
  }
};

TEST_P(L2Norm, AgreesWithTheReference) {
  for (const std::int64_t n : {0, 1, 7, 8, 9, 4095, 4096, 4097, 16384, 16385, 100'003}) {
    const auto x = random_floats(n, 1);
    const double expected = reference::l2_norm(to_double(x));
    EXPECT_NEAR(static_cast<double>(norm_of(x)), expected, 1e-7 * expected) << n;
  }
}

TEST_P(L2Norm, SquaresNeitherOverflowNorVanish) {
  for (const float size : {1e-30F, 1e30F}) {
    EXPECT_FLOAT_EQ(norm_of({3 * size, -4 * size}), 5 * size);
  }
}

TEST_P(L2Norm, ShowsABrokenNumber) {
  auto x = random_floats(5000, 1);
  x[4999] = kNaN;
  EXPECT_TRUE(std::isnan(norm_of(x)));
  x[4999] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(norm_of(x), std::numeric_limits<float>::infinity());
}

INSTANTIATE_TEST_SUITE_P(Setups, L2Norm, nchw_setups(), name_of);

}  // namespace
}  // namespace ringlet::test
