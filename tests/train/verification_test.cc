// Figures of verification against NumPy's (tests/oracle/make_verification.py), and by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"
#include "train/verification/figures.h"

namespace ringlet::train {
namespace {

nlohmann::json oracle() {
  return nlohmann::json::parse(testing::read_file(testing::testdata("oracle/verification.json")));
}

void expect_equal(const FoldedAccuracy& ours, const nlohmann::json& theirs) {
  EXPECT_NEAR(ours.mean, theirs["mean"].get<double>(), 1e-12);
  EXPECT_NEAR(ours.deviation, theirs["deviation"].get<double>(), 1e-12);
}

TEST(Verification, FiguresAreNumPys) {
  int compared = 0;
  const nlohmann::json document = oracle();
  for (const nlohmann::json& expected : document["cases"]) {
    SCOPED_TRACE(expected["name"].get<std::string>() + " " + std::to_string(compared++));
    const auto distances = expected["distances"].get<std::vector<double>>();
    std::vector<bool> same;
    for (const nlohmann::json& answer : expected["same"]) same.push_back(answer == 1);
    const VerificationFigures figures = figures_of(distances, same);
    EXPECT_EQ(figures.pairs, std::ssize(distances));
    expect_equal(figures.grid, expected["grid"]);
    expect_equal(figures.exact, expected["exact"]);
    for (std::size_t i = 0; i < kFalseAccepts.size(); ++i) {
      const nlohmann::json& rate = expected["true_accepts"][i];
      ASSERT_EQ(figures.true_accepts[i].has_value(), !rate.is_null()) << i;
      if (rate.is_null()) continue;
      EXPECT_NEAR(*figures.true_accepts[i], rate.get<double>(), 1e-12) << i;
    }
  }
  EXPECT_EQ(compared, 9);
}

TEST(Verification, FoldsAreContiguousAndTheLargerFirst) {
  // 13 pairs: folds of 2, 2, 2, then of 1. Only the first fold's two are wrong at any threshold
  // that is right for the others.
  std::vector<double> distances(13, 0.5);
  std::vector<bool> same(13, true);
  same[0] = same[1] = false;
  const VerificationFigures figures = figures_of(distances, same);
  EXPECT_DOUBLE_EQ(figures.grid.mean, 0.9);
  EXPECT_NEAR(figures.grid.deviation, 0.3, 1e-12);
}

/// Folds of one kind, and sets: no share is of nothing.
TEST(Verification, KnowsNoRateWithoutBothKinds) {
  const std::vector<double> distances{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1,
                                      1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2};
  for (const bool alike : {true, false}) {
    const VerificationFigures figures = figures_of(distances, std::vector<bool>(20, alike));
    // All alike, the other nine folds need no threshold that reaches to the last one's two.
    EXPECT_DOUBLE_EQ(figures.grid.mean, alike ? 0.9 : 1);
    EXPECT_DOUBLE_EQ(figures.exact.mean, alike ? 0.9 : 1);
    EXPECT_TRUE(figures.roc.empty());
    for (const auto& rate : figures.true_accepts) EXPECT_FALSE(rate.has_value());
  }
  std::vector<bool> halves(20, true);  // five folds have none that differs
  for (std::size_t i = 10; i < 20; ++i) halves[i] = false;
  const VerificationFigures figures = figures_of(distances, halves);
  // The fifth fold's two lie above 0.85, the first of the best thresholds of the other nine.
  EXPECT_DOUBLE_EQ(figures.exact.mean, 0.9);
  EXPECT_EQ(figures.true_accepts[0], 1);
  EXPECT_FALSE(figures.true_accepts[1].has_value());
}

TEST(Verification, ThresholdIsTheFirstOfTheBest) {
  // Any threshold above 0.2 and up to 0.8 is best in nine folds. At the first, 0.21, the tenth's
  // different pair at 0.5 is right; at the last it would not be.
  std::vector<double> distances;
  std::vector<bool> same;
  for (int i = 0; i < 20; ++i) {
    same.push_back(i % 2 == 0);
    distances.push_back(same.back() ? 0.2 : 0.8);
  }
  distances[19] = 0.5;
  EXPECT_DOUBLE_EQ(figures_of(distances, same).grid.mean, 1);
}

TEST(Verification, RocGoesFromNoneToAll) {
  const VerificationFigures figures =
      figures_of(std::vector<double>{0.1, 0.3, 0.3, 0.5}, {true, true, false, false});
  ASSERT_EQ(figures.roc.size(), 4U);
  const double expected[4][3] = {{0, 0, 0}, {0.2, 0, 0.5}, {0.4, 0.5, 1}, {1.5, 1, 1}};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_DOUBLE_EQ(figures.roc[i].threshold, expected[i][0]);
    EXPECT_DOUBLE_EQ(figures.roc[i].false_accepts, expected[i][1]);
    EXPECT_DOUBLE_EQ(figures.roc[i].true_accepts, expected[i][2]);
  }
  EXPECT_TRUE(figures_of(std::vector<double>{0.1, 0.3}, {true, true}).roc.empty());
}

TEST(Verification, DistancesAreOfUnitVectors) {
  const nlohmann::json document = oracle();
  const auto embeddings = document["embeddings"].get<std::vector<double>>();
  Lengths lengths;
  const std::vector<double> distances = pair_distances(embeddings, 5, lengths);
  const auto expected = document["embedding_distances"].get<std::vector<double>>();
  ASSERT_EQ(distances.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(distances[i], expected[i], 1e-12);
  EXPECT_EQ(lengths.rows, 8);
  EXPECT_EQ(lengths.zeros, 1);
  EXPECT_NEAR(lengths.sum / 8, document["mean_length"].get<double>(), 1e-12);
}

TEST(Verification, RefusesWhatHasNoFigures) {
  EXPECT_THROW(figures_of({}, {}), ContractError);
  EXPECT_THROW(figures_of(std::vector<double>{0.1, std::nan("")}, {true, false}), ContractError);
}

}  // namespace
}  // namespace ringlet::train
