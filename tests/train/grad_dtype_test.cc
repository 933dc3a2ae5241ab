// Gradients that travel as f16 or bf16: the sums are near f32's, the same on every rank, the
// statistics exact, and what does not fit is named.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "kernels/narrow_floats.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"
#include "train/learner.h"
#include "train/recipe/models.h"
#include "train/reports/failure.h"
#include "train/sync/transport_choice.h"

namespace ringlet::train {
namespace {

using testing::message_of;
using testing::says;

constexpr std::int64_t kBatch = 300;  // its count is none of bf16's numbers, nor are its parts
constexpr int kSteps = 12;

struct Case {
  DType dtype;
  int replicas;
  const char* sync;
  bool overlap;
  double loss_bound;  // of the losses' relative distance from f32's
};
void PrintTo(const Case& c, std::ostream* out) {
  std::string sync = c.sync;
  std::replace(sync.begin(), sync.end(), '-', '_');
  *out << name_of(c.dtype) << "_" << c.replicas << "_" << sync << (c.overlap ? "" : "_in_place");
}

std::vector<Case> cases() {
  // One rounding in sixteen bits: 2^-9 (bf16) or 2^-12 (f16). Each step's are some p of those, in
  // all directions; what is left of them in the loss after a dozen steps was 9e-4 and 7e-5.
  constexpr double kBrain = 4e-3, kHalf = 5e-4;
  return {{DType::bf16, 2, "ring", true, kBrain},    {DType::bf16, 3, "ring", true, kBrain},
          {DType::bf16, 3, "naive", false, kBrain},  {DType::bf16, 4, "two-shot", true, kBrain},
          {DType::bf16, 3, "auto", true, kBrain},    {DType::f16, 2, "ring", true, kHalf},
          {DType::f16, 3, "one-shot", false, kHalf}, {DType::f16, 4, "doubling", true, kHalf}};
}

TrainOptions options_of(DType dtype, int replicas, const std::string& sync = "ring") {
  TrainOptions options = plain_options(replicas, sync);
  options.recipe.batch_size = kBatch;
  options.recipe.grad_dtype = dtype;
  options.recipe.lr = 0.02;  // a calm descent, which rounding does not throw off its way
  options.recipe.momentum = 0.5;
  options.execution.bucket_kb = 64;
  options.execution.check_replicas = 1;
  return options;
}

class GradDType : public ::testing::TestWithParam<Case> {};

TEST_P(GradDType, LearnsNearlyWhatF32DoesAndTheSameOnEveryRank) {
  const Case& c = GetParam();
  const data::Splits data = formula_splits(kBatch * kSteps);
  const auto losses_of = [&](DType dtype) {
    TrainOptions options = options_of(dtype, c.replicas, c.sync);
    options.execution.overlap = c.overlap;
    const Outcome outcome = run(options, data);
    for (const HostState& state : outcome.of_ranks) {
      EXPECT_EQ(bytes_of(state), bytes_of(outcome.of_ranks[0])) << name_of(dtype);
    }
    return outcome.losses();
  };
  const auto exact = losses_of(DType::f32), narrow = losses_of(c.dtype);
  ASSERT_EQ(narrow.size(), exact.size());
  EXPECT_LT(exact.back(), 0.9 * exact.front()) << "too little is learnt to tell anything";
  EXPECT_NEAR(narrow.front(), exact.front(), 1e-6 * exact.front()) << "a statistic was rounded";
  EXPECT_NE(narrow, exact) << "the gradients were not narrowed";
  for (std::size_t i = 0; i < exact.size(); ++i) {
    EXPECT_NEAR(narrow[i], exact[i], c.loss_bound * exact[i]) << "step " << i + 1;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GradDType, ::testing::ValuesIn(cases()),
                         ::testing::PrintToStringParamName());

/// What one step of `sync` makes of the gradients value(i), those of the statistics with them.
std::vector<float> synced(Device& device, nn::Parameters& parameters, GradientSync& sync,
                          const std::function<float(std::int64_t)>& value) {
  const std::int64_t count = parameters.gradients().count();
  std::vector<float> gradients;
  for (std::int64_t i = 0; i < count; ++i) gradients.push_back(value(i));
  copy_from_host(device.compute(), gradients.data(), parameters.gradients());
  sync.begin_step();
  for (const nn::Parameter* parameter : parameters.registry().parameters) {
    sync.gradient_ready(*parameter);
  }
  sync.finish();
  copy_to_host(device.compute(), parameters.gradients(), gradients.data());
  return gradients;
}

TEST(NarrowSync, SumsAreOfNarrowedGradientsAndTheStatisticsExact) {
  constexpr int kRanks = 2;
  Execution execution;
  execution.devices.assign(kRanks, DeviceId{});
  run_replicas(execution, [](Device& device, comm::Communicator& communicator) {
    ReplicaSpec spec;
    spec.recipe.model = "mlp";
    Replica replica(device, spec);
    nn::Parameters& parameters = replica.parameters();
    const SyncOptions options{{.bucket_kb = 64}, {.grad_dtype = DType::bf16}};
    GradientSync sync(device, communicator, parameters, ShardTree(1), options);
    ASSERT_TRUE(sync.narrows());
    const std::vector<Bucket>& buckets = sync.buckets();
    ASSERT_GT(buckets.size(), 2U);
    EXPECT_EQ(buckets[0].name, "statistics");
    EXPECT_EQ(buckets[0].wire_bytes(), 4 * nn::Parameters::kStatistics);
    EXPECT_EQ(buckets[1].name.find("bucket 0 ("), 0U);
    EXPECT_EQ(wire_bytes(buckets),
              2 * parameters.plan().elements + 4 * nn::Parameters::kStatistics);

    const auto value = [](int rank, std::int64_t i) {
      return (1.0F + static_cast<float>(rank)) * (1.0F + static_cast<float>(i % 997) / 1024);
    };
    const std::int64_t count = parameters.gradients().count();
    const auto sums = synced(device, parameters, sync,
                             [&](std::int64_t i) { return value(communicator.rank(), i); });
    const auto narrow = [](float x) { return widen(to_bfloat16(x)); };
    for (std::int64_t i = 0; i < count; ++i) {
      const float actual = sums[static_cast<std::size_t>(i)];
      if (i < parameters.plan().elements) {
        ASSERT_EQ(actual, narrow(narrow(value(0, i)) + narrow(value(1, i)))) << i;
      } else {
        ASSERT_EQ(actual, value(0, i) + value(1, i)) << i;
      }
    }
  });
}

TEST(NarrowSync, OneReplicaNarrowsNothing) {
  const data::Splits data = formula_splits(3 * kBatch);
  const Outcome wide = run(options_of(DType::f32, 1), data);
  EXPECT_EQ(bytes_of(run(options_of(DType::bf16, 1), data).state), bytes_of(wide.state));
}

/// Trains one step with all parameters `factor` times as large as they start.
Outcome train_scaled(DType dtype, float factor) {
  TrainOptions options = options_of(dtype, 2);
  options.recipe.model = "mlp";
  options.recipe.lr = 0;
  options.max_steps = 1;
  const RunSetup setup = make_run_setup(options, formula_splits(kBatch), 2);
  return run(setup, {}, [factor](TrainLoop& loop, Device& device, int) {
    const View values = loop.replica().parameters().values();
    scale(device.compute(), factor, values, 0, values);
  });
}

/// Sums of rank's gradients value(rank, i), on ranks whose machines are `machine_of`.
std::vector<float> sums_narrowed_between(const std::vector<int>& machine_of,
                                         const std::function<float(int, std::int64_t)>& value) {
  const int ranks = static_cast<int>(machine_of.size());
  Execution execution;
  execution.devices.assign(machine_of.size(), DeviceId{});
  comm::LocalGroup group(ranks);
  group.set_machines(machine_of);
  std::vector<std::vector<float>> sums(machine_of.size());
  run_replicas(group, decided(execution), [&](Device& device, comm::Communicator& communicator) {
    ReplicaSpec spec;
    spec.recipe.model = "mlp";
    Replica replica(device, spec);
    nn::Parameters& parameters = replica.parameters();
    GradientSync sync(device, communicator, parameters, ShardTree(1),
                      {{.bucket_kb = 64}, {.grad_dtype = DType::bf16, .narrow_between = true}});
    sync.rehearse();
    const std::int64_t count = parameters.gradients().count();
    std::vector<float> mine = synced(device, parameters, sync,
                                     [&](std::int64_t i) { return value(communicator.rank(), i); });
    const std::int64_t rest = count - parameters.plan().elements;
    for (std::int64_t i = count - rest; i < count; ++i) {
      float exact = 0;
      for (int rank = 0; rank < ranks; ++rank) exact += value(rank, i);
      EXPECT_EQ(mine[static_cast<std::size_t>(i)], exact) << "a statistic was rounded";
    }
    mine.resize(static_cast<std::size_t>(parameters.plan().elements));
    sums[static_cast<std::size_t>(communicator.rank())] = mine;
  });
  for (const auto& of_rank : sums) EXPECT_EQ(of_rank, sums.front());
  return sums.front();
}

TEST(NarrowSync, RoundsOnlyWhatGoesBetweenMachines) {
  // Whole numbers: exact in f32, and of more bits than bf16 has.
  const auto value = [](int rank, std::int64_t i) {
    return static_cast<float>((i * 37 + rank * 1009) % 4001 - 2000);
  };
  const auto narrow = [](float x) { return widen(to_bfloat16(x)); };
  const auto apart = sums_narrowed_between({0, 0, 1, 1}, value);
  const auto together = sums_narrowed_between({0, 0, 0, 0}, value);
  int rounded = 0;
  for (std::size_t i = 0; i < apart.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const float first = value(0, at) + value(1, at), second = value(2, at) + value(3, at);
    ASSERT_EQ(together[i], first + second) << i;
    ASSERT_EQ(apart[i], narrow(narrow(first) + narrow(second))) << i;
    rounded += apart[i] != together[i] ? 1 : 0;
  }
  EXPECT_GT(rounded, 1000) << "bf16 would have held all of it";
}

TEST(NarrowSync, BetweenMachinesTakesNoOtherStrategy) {
  TrainOptions options = options_of(DType::bf16, 2, "ring");
  options.recipe.narrow_between = true;
  const auto set_up = [&] { make_run_setup(options, formula_splits(kBatch), 2); };
  EXPECT_TRUE(says(message_of<ContractError>(set_up),
                   {"--grad-dtype bf16-between", "two-level", "leave --sync out"}));
}

TEST(NarrowSync, NamesAGradientThatDoesNotFit) {
  constexpr float kFactor = 3000;
  EXPECT_TRUE(std::isfinite(train_scaled(DType::f32, kFactor).losses().front()));
  EXPECT_TRUE(std::isfinite(train_scaled(DType::bf16, kFactor).losses().front()));
  EXPECT_TRUE(says(message_of<RunError>([] { train_scaled(DType::f16, kFactor); }),
                   {"gradient of step 1 (epoch 1)", "f16", "65504", "--grad-dtype", "bf16"}));
}

TEST(NarrowSync, ExactModeRefusesIt) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    TrainOptions options = exact_options(2);
    options.recipe.grad_dtype = dtype;
    const auto set_up = [&] { make_run_setup(options, formula_splits(kBatch), 2); };
    EXPECT_TRUE(says(message_of<ContractError>(set_up), {"--grad-dtype", "--exact"}));
  }
}

TEST(NarrowSync, ALearnerNarrowsToo) {
  const auto dataset = formula_dataset(64);
  const auto loss_after = [&](DType dtype, float seed_factor) {
    double last = 0;
    Execution execution;
    execution.devices.assign(2, DeviceId{});
    run_replicas(execution, [&](Device& device, comm::Communicator& all) {
      const nn::ModelInput input{1, static_cast<int>(dataset->height()),
                                 static_cast<int>(dataset->width()),
                                 static_cast<int>(dataset->target_values())};
      LearnerOptions learner_options{.input = input};
      learner_options.recipe.grad_dtype = dtype;
      Learner learner(
          device, all, [](const nn::ModelInput& of_model) { return make_model("mlp", of_model); },
          learner_options);
      const View values = learner.parameters().values();
      scale(device.compute(), seed_factor, values, 0, values);
      const auto share = [&](std::int64_t k) -> std::optional<data::BatchRequest> {
        if (k == 4) return {};
        return data::BatchRequest{0, 32 * all.rank(), 32 * (all.rank() + 1)};
      };
      data::Loader loader(dataset, Sampler(dataset->size(), 1, false), share, {.max_batch = 64});
      while (const data::Batch* batch = loader.next()) {
        const double loss = learner.step(*batch, 64, {.lr = 0.05});
        if (all.rank() == 0) last = loss;
      }
    });
    return last;
  };
  const double wide = loss_after(DType::f32, 1), narrow = loss_after(DType::bf16, 1);
  EXPECT_NE(narrow, wide);
  EXPECT_NEAR(narrow, wide, 4e-3 * wide);
  EXPECT_TRUE(says(message_of<Error>([&] { loss_after(DType::f16, 3000); }),
                   {"Learner::step", "gradient is beyond", "grad_dtype"}));
}

}  // namespace
}  // namespace ringlet::train
