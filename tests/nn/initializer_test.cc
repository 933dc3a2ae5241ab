#include "nn/initializer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace ringlet::nn {
namespace {

constexpr std::size_t kCount = 100000;

std::vector<float> draw(const Initializer& initializer, std::uint64_t seed = 1,
                        std::string_view name = "fc.weight", std::size_t count = kCount) {
  std::vector<float> values(count, NAN);
  initialize(initializer, seed, name, values);
  return values;
}

/// The k-th central moment, or for k = 1 the mean.
double moment(const std::vector<float>& values, int k) {
  const double mean = k == 1 ? 0 : moment(values, 1);
  double sum = 0;
  for (const float value : values) sum += std::pow(value - mean, k);
  return sum / static_cast<double>(values.size());
}

TEST(Initializer, ConstantsAreConstant) {
  EXPECT_EQ(draw(Initializer::zeros()), std::vector<float>(kCount, 0));
  EXPECT_EQ(draw(Initializer::constant(2.5F)), std::vector<float>(kCount, 2.5F));
}

// Bounds are five standard deviations of the estimate.
TEST(Initializer, NormalHasItsMomentsAndTails) {
  const auto values = draw(Initializer::normal(0.01F));
  EXPECT_NEAR(moment(values, 1), 0, 5 * 0.01 / std::sqrt(kCount));
  EXPECT_NEAR(moment(values, 2), 1e-4, 5 * 1e-4 * std::sqrt(2.0 / kCount));
  EXPECT_NEAR(moment(values, 4) / 1e-8, 3, 5 * std::sqrt(96.0 / kCount));
  const auto within = std::count_if(values.begin(), values.end(),
                                    [](float value) { return std::abs(value) < 0.01F; });
  EXPECT_NEAR(static_cast<double>(within) / kCount, 0.6827, 5 * 0.5 / std::sqrt(kCount));
}

TEST(Initializer, TorchDefaultIsUniformWithinOneOverTheRootOfFanIn) {
  const auto values = draw(Initializer::torch_default(25));
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  EXPECT_GE(*least, -0.2F);
  EXPECT_LT(*least, -0.199F);
  EXPECT_LE(*most, 0.2F);
  EXPECT_GT(*most, 0.199F);
  EXPECT_NEAR(moment(values, 1), 0, 5 * 0.2 / std::sqrt(3.0 * kCount));
  EXPECT_NEAR(moment(values, 2), 0.04 / 3, 1e-4);
}

TEST(Initializer, KaimingNormalHasVarianceTwoOverFanIn) {
  EXPECT_NEAR(moment(draw(Initializer::kaiming_normal(500)), 2), 2.0 / 500,
              5 * 2.0 / 500 * std::sqrt(2.0 / kCount));
}

TEST(Initializer, IsAPureFunctionOfSeedNameAndElement) {
  const Initializer normal = Initializer::normal(1);
  const auto values = draw(normal);
  EXPECT_EQ(draw(normal), values);
  EXPECT_NE(draw(normal, 2), values);
  EXPECT_NE(draw(normal, 1, "fc.bias"), values);
  EXPECT_EQ(draw(normal, 1, "fc.weight", 10),
            std::vector<float>(values.begin(), values.begin() + 10));
}

// A model's weights must not repeat themselves, nor those of the next seed.
TEST(Initializer, ElementsNamesAndSeedsAreUncorrelated) {
  const Initializer normal = Initializer::normal(1);
  const auto correlation = [](const std::vector<float>& a, const std::vector<float>& b) {
    double sum = 0;
    const std::size_t count = std::min(a.size(), b.size());
    for (std::size_t i = 0; i < count; ++i) sum += static_cast<double>(a[i]) * b[i];
    return sum / static_cast<double>(count);
  };
  const auto values = draw(normal);
  const std::vector<float> shifted(values.begin() + 1, values.end());
  const double bound = 5 / std::sqrt(kCount);
  EXPECT_NEAR(correlation(values, shifted), 0, bound);
  EXPECT_NEAR(correlation(values, draw(normal, 2)), 0, bound);
  EXPECT_NEAR(correlation(values, draw(normal, 1, "fc.bias")), 0, bound);
}

// FNV-1a's published test vectors.
TEST(HashOf, IsFnv1a) {
  EXPECT_EQ(hash_of(""), 0xcbf29ce484222325);
  EXPECT_EQ(hash_of("a"), 0xaf63dc4c8601ec8c);
  EXPECT_EQ(hash_of("foobar"), 0x85944171f73967e8);
}

}  // namespace
}  // namespace ringlet::nn
