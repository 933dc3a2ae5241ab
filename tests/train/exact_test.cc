// What must not change a bit: the number of replicas and threads in exact mode, the strategy
// between two replicas, the buckets, overlap. And the seed must.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/files.h"
#include "tests/support/gpu.h"
#include "tests/train/runs.h"

namespace ringlet::train {
namespace {

/// The bytes of OUT/model.safetensors.
std::string model_file(TrainOptions options, const data::Splits& data) {
  const testing::TemporaryDirectory folder;
  options.files.out = folder.path();
  run(options, data);
  return testing::read_file(folder / "model.safetensors");
}

struct Case {
  std::string name;
  std::int64_t batch, samples;
  int accumulate = 1, threads = 1;
  LayoutChoice layout = LayoutChoice::automatic;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class ExactMode : public ::testing::TestWithParam<Case> {};

TEST_P(ExactMode, TheNumberOfReplicasChangesNoBit) {
  const Case& c = GetParam();
  const data::Splits data = formula_splits(c.samples);
  const auto options = [&c](int replicas, int threads) {
    TrainOptions made = exact_options(replicas);
    made.recipe.batch_size = c.batch;
    made.recipe.accumulate = c.accumulate;
    made.recipe.epochs = 2;
    made.execution.threads = threads;
    made.execution.layout = c.layout;
    made.execution.bucket_kb = 64;
    return made;
  };
  const std::string one = model_file(options(1, 1), data);
  ASSERT_GT(one.size(), 100'000u);
  for (const int replicas : {2, 4, 8}) {
    EXPECT_TRUE(model_file(options(replicas, c.threads), data) == one) << replicas << " replicas";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Batches, ExactMode,
    ::testing::Values(Case{"short_last_batch", 64, 150},
                      Case{"lanes", 64, 150, 1, 1, LayoutChoice::lanes},
                      Case{"fewer_samples_than_shards", 5, 13},
                      Case{"fewer_samples_than_shards_in_lanes", 5, 13, 1, 1, LayoutChoice::lanes},
                      Case{"accumulate", 70, 160, 2}, Case{"three_threads", 256, 300, 1, 3},
                      Case{"a_batch_of_one", 1, 3}),
    ::testing::PrintToStringParamName());

TEST(ExactModeSetup, RefusesKernelsChosenByTime) {
  const data::Splits data = formula_splits(150);
  const auto message = [&data](const TrainOptions& options) {
    return testing::message_of<ContractError>([&] { make_run_setup(options, data, 1); });
  };
  TrainOptions options = exact_options(1);
  options.execution.autotune = true;
  EXPECT_TRUE(testing::says(message(options), {"--autotune", "--exact"}));
  options.recipe.exact = false;
  EXPECT_NO_THROW(make_run_setup(options, data, 1));
  options.execution.deterministic = true;
  EXPECT_TRUE(testing::says(message(options), {"--autotune", "--deterministic"}));
}

TEST(ExactModeOnCuda, TheNumberOfReplicasChangesNoBit) {
  SKIP_WITHOUT_GPU();
  const data::Splits data = formula_splits(150);
  const auto options = [](int replicas) {
    TrainOptions made = exact_options(replicas);
    made.recipe.epochs = 2;
    for (DeviceId& device : made.execution.devices) device.kind = DeviceKind::cuda;
    return made;
  };
  const std::string one = model_file(options(1), data);
  for (const int replicas : {2, 4}) {
    EXPECT_TRUE(model_file(options(replicas), data) == one) << replicas << " replicas";
  }
}

TEST(Bits, ThreadsChangeNone) {
  const data::Splits data = formula_splits(150);
  for (const auto layout : {LayoutChoice::nchw, LayoutChoice::lanes}) {
    TrainOptions options = plain_options(1);
    options.execution.layout = layout;
    const std::string one = bytes_of(run(options, data).state);
    options.execution.threads = 3;
    EXPECT_TRUE(bytes_of(run(options, data).state) == one);
  }
}

TEST(Bits, StrategiesAgreeBetweenTwoReplicas) {
  const data::Splits data = formula_splits(150);
  const std::string naive = bytes_of(run(plain_options(2, "naive"), data).state);
  for (const char* sync :
       {"tree", "ring", "halving-doubling", "doubling", "one-shot", "two-shot"}) {
    EXPECT_TRUE(bytes_of(run(plain_options(2, sync), data).state) == naive) << sync;
  }
}

TEST(Bits, OverlapAndBucketsChangeNone) {
  const data::Splits data = formula_splits(150);
  TrainOptions options = plain_options(3, "doubling");
  const std::string expected = bytes_of(run(options, data).state);
  for (const bool overlap : {true, false}) {
    for (const std::int64_t bucket_kb :
         {std::int64_t{0}, std::int64_t{16}, std::int64_t{1} << 30}) {
      options.execution.overlap = overlap;
      options.execution.bucket_kb = bucket_kb;
      EXPECT_TRUE(bytes_of(run(options, data).state) == expected)
          << "overlap " << overlap << ", buckets of " << bucket_kb << " KiB";
    }
  }
}

TEST(Bits, TheSeedDecides) {
  const data::Splits data = formula_splits(150);
  TrainOptions options = plain_options(2);
  options.recipe.shuffle = true;
  const std::string first = model_file(options, data);
  EXPECT_TRUE(model_file(options, data) == first);
  options.recipe.seed = 2;
  EXPECT_FALSE(model_file(options, data) == first);
}

TEST(Bits, TheSeedShuffles) {
  const data::Splits data = formula_splits(150);
  TrainOptions options = plain_options(1);
  options.recipe.model = "mlp";
  const testing::TemporaryDirectory folder;
  options.files.out = folder.path();
  options.max_steps = 0;
  run(options, data);
  options.max_steps = -1;
  options.files.init = folder / "model.safetensors";  // the same start whatever the seed
  options.files.out.clear();
  const std::string in_order = bytes_of(run(options, data).state);
  options.recipe.shuffle = true;
  const std::string first = bytes_of(run(options, data).state);
  options.recipe.seed = 2;
  const std::string second = bytes_of(run(options, data).state);
  EXPECT_FALSE(first == in_order);
  EXPECT_FALSE(first == second);
}

}  // namespace
}  // namespace ringlet::train
