#include "kernels/l2_norm.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/kernels/harness.h"
#include "tests/reference/elements.h"

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

TEST_P(L2Norm, ShortensWhatIsTooLong) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const auto factor_of = [&](const std::vector<float>& x, float most) {
    const auto count = static_cast<std::int64_t>(x.size());
    const Tensor factor = run([&](Device& device) {
      const Tensor norm = output(device, {1});
      Tensor result = output(device, {1});
      l2_norm(device.compute(), upload(device, {count}, x), norm, {most, result});
      return result;
    });
    return read(factor)[0];
  };
  EXPECT_EQ(factor_of({3, 4}, 1), 1 / (5 + 1e-6F));
  EXPECT_EQ(factor_of({3, 4}, 5), 5 / (5 + 1e-6F)) << "PyTorch's, below 1 at the very norm";
  EXPECT_EQ(factor_of({3, 4}, 6), 1);
  EXPECT_EQ(factor_of({0, 0}, 1e-3F), 1);
  const auto many = random_floats(50'000, 1);
  EXPECT_FLOAT_EQ(factor_of(many, 0.5F), 0.5F / norm_of(many));
  EXPECT_TRUE(std::isnan(factor_of({1, kNan}, 1)));
  EXPECT_EQ(factor_of({1, std::numeric_limits<float>::infinity()}, 1), 0);
}

INSTANTIATE_TEST_SUITE_P(Setups, L2Norm, nchw_setups(), name_of);

}  // namespace
}  // namespace ringlet::test
