// Shares of different sizes, and empty ones: the result is the sum over all samples divided by
// their number, as if one replica had computed it all.
#include <gtest/gtest.h>

#include <string>

#include "tests/train/runs.h"

namespace ringlet::train {
namespace {

struct Case {
  std::int64_t batch, samples;
  int replicas;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << "batch" << c.batch << "_of_" << c.samples << "_over" << c.replicas;
}

class Uneven : public ::testing::TestWithParam<Case> {};

TEST_P(Uneven, SharesLearnWhatOneReplicaLearns) {
  const Case& c = GetParam();
  const data::Splits data = formula_splits(c.samples);
  for (const auto layout : {LayoutChoice::nchw, LayoutChoice::lanes}) {
    TrainOptions options = plain_options(1);
    options.recipe.batch_size = c.batch;
    options.recipe.lr = 0.02;
    options.execution.layout = layout;
    options.execution.bucket_kb = 16;
    const Outcome one = run(options, data);
    options.execution.devices.resize(static_cast<std::size_t>(c.replicas));
    for (const int accumulate : {1, 2}) {
      if (accumulate > c.batch) continue;  // which is refused
      options.recipe.accumulate = accumulate;
      const Outcome shared = run(options, data);
      ASSERT_EQ(shared.steps.size(), one.steps.size());
      for (std::size_t i = 0; i < one.steps.size(); ++i) {
        EXPECT_NEAR(shared.steps[i].loss, one.steps[i].loss, 1e-5) << "step " << i + 1;
        EXPECT_EQ(shared.steps[i].samples, one.steps[i].samples);
      }
      EXPECT_LT(distance(shared.state, one.state), 1e-5) << "accumulate " << accumulate;
      for (const HostState& rank : shared.of_ranks) {
        EXPECT_TRUE(bytes_of(rank) == bytes_of(shared.state));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Batches, Uneven,
                         ::testing::Values(Case{3, 10, 4},    // one rank never has a sample
                                           Case{64, 130, 4},  // a last batch of 2 over 4
                                           Case{1, 5, 3}, Case{15, 40, 3}, Case{16, 40, 3},
                                           Case{17, 40, 3},
                                           Case{256, 608, 3}),  // 86/85/85, and a last batch of 96
                         ::testing::PrintToStringParamName());

TEST(Uneven, TheShareOfEveryReplicaIsTold) {
  class Shares : public RunListener {
   public:
    void started(const StartReport& report) override { of_rank = report.batch_of_replica; }
    std::vector<std::int64_t> of_rank;
  } shares;
  TrainOptions options = plain_options(3);
  options.recipe.model = "mlp";
  options.recipe.batch_size = 256;
  options.max_steps = 1;
  run(options, formula_splits(300), {&shares});
  EXPECT_EQ(shares.of_rank, (std::vector<std::int64_t>{86, 85, 85}));
}

}  // namespace
}  // namespace ringlet::train
