// Probabilities and right answers from logits.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "train/task/classification.h"
#include "train/task/classification_logits.h"

namespace ringlet::train {
namespace {

TEST(Logits, BecomeProbabilitiesInOrder) {
  const std::vector<float> logits{std::log(1.0F), std::log(5.0F), std::log(4.0F)};
  const std::vector<Guess> all = likeliest(logits, 9);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].index, 1);
  EXPECT_EQ(all[1].index, 2);
  EXPECT_EQ(all[2].index, 0);
  EXPECT_NEAR(all[0].probability, 0.5, 1e-7);
  EXPECT_NEAR(all[2].probability, 0.1, 1e-7);
  EXPECT_EQ(likeliest(logits, 1), std::vector<Guess>{all[0]});
}

TEST(Logits, OfAnySizeDoNotOverflow) {
  const std::vector<Guess> large = likeliest(std::vector<float>{3e38F, -3e38F}, 2);
  EXPECT_EQ(large[0], (Guess{0, 1}));
  EXPECT_EQ(large[1], (Guess{1, 0}));
}

TEST(Logits, ThatAreEqualComeInTheOrderOfTheClasses) {
  const std::vector<Guess> guesses = likeliest(std::vector<float>{1, 2, 2, 1}, 4);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(guesses[i].index, (std::vector<std::int64_t>{1, 2, 0, 3})[i]);
  }
}

TEST(Logits, ThatAreBrokenAreFound) {
  std::vector<float> logits(12, 1);
  EXPECT_EQ(first_nonfinite(logits, 3), -1);
  logits[10] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(first_nonfinite(logits, 3), 3);
  logits[5] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(first_nonfinite(logits, 3), 1);
}

TEST(Logits, ThatAreBrokenGiveNaNsWithoutASign) {
  for (const float broken : {-std::numeric_limits<float>::quiet_NaN(),
                             std::numeric_limits<float>::infinity()}) {  // inf - inf is "-nan" here
    const std::vector<float> logits{0, broken};
    const double loss = judge(logits, std::vector<std::int32_t>{1}, 2).loss;
    EXPECT_TRUE(std::isnan(loss));
    EXPECT_FALSE(std::signbit(loss));
    for (const Guess& guess : likeliest(logits, 2)) EXPECT_FALSE(std::signbit(guess.probability));
  }
}

TEST(Logits, AreJudgedByTheirLargest) {
  const std::vector<float> logits{2, 1, 0, 1, 1, 0, 0, 0, 7};  // of equal ones the first counts
  const std::vector<std::int32_t> labels{0, 1, 2};
  const Evaluation result = judge(logits, labels, 3);
  EXPECT_EQ(result.samples, 3);
  EXPECT_EQ(result.right, 2);
  EXPECT_EQ(class_counts(result)[1].samples, 1);
  EXPECT_EQ(class_counts(result)[1].right, 0);
  const double loss = std::log(1 + std::exp(-1) + std::exp(-2)) + std::log(2 + std::exp(-1)) +
                      std::log(1 + 2 * std::exp(-7));
  EXPECT_NEAR(result.loss, loss / 3, 1e-12);
  EXPECT_THROW(judge(logits, std::vector<std::int32_t>{3}, 3), ContractError);
}

}  // namespace
}  // namespace ringlet::train
