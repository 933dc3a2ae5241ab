// Training by a loss with a margin (--loss arcface and the like): what is learnt does not depend on
// how many ranks have the classes' centres.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/meta_device.h"
#include "tests/comm/processes.h"
#include "tests/support/files.h"
#include "tests/train/margin_trial.h"
#include "tests/train/runs.h"
#include "train/files/centres.h"
#include "train/sync/shard_tree.h"

namespace ringlet::train {
namespace {

/// One class; fewer than ranks; uneven on three and four; more than a block of the product.
class MarginRun : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Classes, MarginRun, ::testing::Values(1, 3, 10, 33));

TEST_P(MarginRun, LearnsTheSameOnAnyNumberOfRanks) {
  const Outcome one = Trial(plain_options(1), GetParam()).to_the_end();
  if (GetParam() > 1) {
    EXPECT_LT(one.epochs.back().train_loss, 0.98 * one.epochs.front().train_loss);
  }
  for (const int ranks : {2, 3, 4, 8}) {
    SCOPED_TRACE(ranks);
    for (const auto layout : {LayoutChoice::nchw, LayoutChoice::lanes}) {
      const testing::TemporaryDirectory folder;
      Trial more(plain_options(ranks), GetParam());
      more.options.files.out = folder.path();
      more.options.execution.layout = layout;
      more.options.execution.overlap = layout == LayoutChoice::lanes;
      const Outcome outcome = more.to_the_end();
      expect_losses_near(outcome.losses(), one.losses(), 2e-5);
      EXPECT_NEAR(outcome.result.test.loss, one.result.test.loss, 2e-5);
      EXPECT_EQ(outcome.result.test.right, one.result.test.right);
      EXPECT_LT(test::relative_l2(centres_in(folder.path()), one.state.values.back()), 1e-4);
    }
  }
}

TEST_P(MarginRun, ExactModeHasTheSameBytesOnAnyNumberOfRanks) {
  int turn = 0;
  for (const std::string& loss : margin_losses()) {
    const auto learnt = [&](int ranks) {
      Trial made(exact_options(ranks), GetParam());
      Recipe& recipe = made.options.recipe;
      recipe.epochs = 2;
      recipe.loss = loss;
      recipe.filter = 0.4;
      recipe.margin_warmup = 1;
      recipe.optimizer = turn % 2 == 0 ? "sgd" : "adamw";
      recipe.nesterov = turn % 2 == 0;
      recipe.momentum = turn % 2 == 0 ? 0.9 : 0;
      recipe.accumulate = 2;
      recipe.clip_norm = 0.5;
      return files_of(std::move(made));
    };
    const std::string one = learnt(1);
    for (const int ranks : {2, 4, 8}) EXPECT_TRUE(learnt(ranks) == one) << loss << " " << ranks;
    ++turn;
  }
}

/// With some of the classes a step: of 33 all may be named, of 1,003 there is no room for most.
Trial sampled(TrainOptions options, double rate, const std::string& optimizer = "sgd",
              int classes = 33) {
  Trial trial(std::move(options), classes);
  Recipe& recipe = trial.options.recipe;
  recipe.sample_rate = rate;
  recipe.optimizer = optimizer;
  recipe.momentum = optimizer == "sgd" ? 0.9 : 0;
  recipe.nesterov = false;
  recipe.batch_size = 12;
  return trial;
}

TEST(Margin, SamplesTheSameClassesOnAnyNumberOfRanks) {
  for (const char* optimizer : {"sgd", "adamw"}) {
    for (const auto& [classes, rate] :
         {std::pair<int, double>{7, 0.5}, {33, 0}, {33, 0.3}, {1003, 0.05}}) {
      const Outcome one = sampled(plain_options(1), rate, optimizer, classes).to_the_end();
      EXPECT_LT(one.epochs.back().train_loss, one.epochs.front().train_loss);
      for (const int ranks : {2, 3, 4, 8}) {
        SCOPED_TRACE(ranks);
        const testing::TemporaryDirectory folder;
        Trial more = sampled(plain_options(ranks), rate, optimizer, classes);
        more.options.files.out = folder.path();
        more.options.recipe.accumulate = ranks == 3 ? 2 : 1;
        const Outcome outcome = more.to_the_end();
        expect_losses_near(outcome.losses(), one.losses(), 2e-5);
        EXPECT_LT(test::relative_l2(centres_in(folder.path()), one.state.values.back()), 1e-4);
      }
    }
  }
}

TEST(Margin, SamplesBitForBitInExactModeAndAfterAResumption) {
  for (const char* optimizer : {"sgd", "adamw"}) {
    for (const auto& [classes, rate] :
         {std::pair<int, double>{7, 0.5}, {33, 0}, {33, 0.3}, {1003, 0.05}}) {
      const auto exact = [&, many = classes, part = rate](int ranks) {
        return sampled(exact_options(ranks), part, optimizer, many);
      };
      const std::string whole = files_of(exact(1));
      for (const int ranks : {2, 4, 8}) EXPECT_TRUE(files_of(exact(ranks)) == whole) << ranks;
      for (const int ranks : {1, 2, 8}) {
        const testing::TemporaryDirectory folder;
        Trial four = exact(4), rest = exact(ranks);
        four.options.files.out = rest.options.files.out = folder.path();
        four.options.max_steps = 5;
        four.to_the_end();
        run(make_run_setup(rest.options, rest.data, ranks, read_state(folder.path())));
        EXPECT_TRUE(files_of(folder.path()) == whole) << ranks;
      }
    }
  }
}

/// A row keeps every bit, and those of its optimiser's state, unless the step has it.
TEST(Margin, LeavesTheRowsOfOtherClasses) {
  constexpr int kClasses = 200;
  for (const char* optimizer : {"sgd", "adamw"}) {
    const auto state_after = [&](std::int64_t steps) {
      Trial made = sampled(plain_options(1), 0.2, optimizer, kClasses);
      made.options.recipe.weight_decay = 0.1;
      made.options.max_steps = steps;
      return made.to_the_end().state;
    };
    Trial trial = sampled(plain_options(1), 0.2, optimizer, kClasses);
    const RunSetup setup = make_run_setup(trial.options, trial.data, 1);
    nn::RowSampler sampler(
        {.rate = 0.2, .shards = 8, .most_named = 12, .seed = setup.options.recipe.seed}, kClasses,
        {});
    std::vector<std::int32_t> labels;
    std::vector<float> steps(kClasses, 0);
    HostState before = state_after(0);
    for (std::int64_t step = 0; step < 4; ++step) {
      const HostState after = state_after(step + 1);
      labels_of_step(setup, step, labels);
      std::vector<bool> listed(kClasses);
      for (const std::int32_t row : sampler.list(step, labels)) {
        if (row >= 0) listed[static_cast<std::size_t>(row)] = true;
      }
      EXPECT_LT(std::ranges::count(listed, true), 60);
      const auto rows_moved = [&](const std::vector<float>& then, const std::vector<float>& now) {
        std::vector<bool> moved(kClasses);
        for (std::size_t k = 0; k < then.size(); ++k) {
          if (then[k] != now[k]) moved[k / kSize] = true;
        }
        return moved;
      };
      EXPECT_EQ(rows_moved(before.values.back(), after.values.back()), listed);
      for (std::size_t a = 0; a < 2 && a < after.optimizer.size(); ++a) {
        EXPECT_EQ(rows_moved(before.optimizer[a].tensors.back(), after.optimizer[a].tensors.back()),
                  listed);
      }
      for (std::size_t row = 0; row < steps.size(); ++row) steps[row] += listed[row] ? 1 : 0;
      if (after.optimizer.size() == 3) {
        EXPECT_EQ(after.optimizer[2].tensors, (std::vector<std::vector<float>>{steps}));
      }
      before = after;
    }
  }
}

/// Nothing of the size of all classes beside the rows and the optimiser's state of them.
TEST(Margin, HasAGradientOfTheSampleAlone) {
  const auto plan_of = [](double rate) {
    ReplicaSpec spec;
    spec.recipe.model = "mlp";
    spec.recipe.loss = "arcface";
    spec.recipe.embedding_size = 64;
    spec.recipe.batch_size = 100;
    spec.recipe.sample_rate = rate;
    spec.input = {1, 5, 5, 100'000};
    spec.max_train_batch = 100;
    const auto device = open_device({});
    const auto model = make_model(spec);
    const auto task = task_of(spec);
    return nn::plan_training(nn::register_model(*model), batch_of(spec, 100),
                             pass_of(*task, *model, true));
  };
  const nn::Plan all = plan_of(1), tenth = plan_of(0.1);
  EXPECT_EQ(all.with_gradient(), all.elements);
  EXPECT_EQ(tenth.elements, all.elements);
  EXPECT_LT(tenth.with_gradient(), tenth.of_model() + 64 * 100'000 / 10 + 64);
  EXPECT_LT(tenth.activation_bytes, 2 * 64 * 100'000 / 10 * 4 + (40 << 20));
}

/// Counts what is allocated.
class CountingDevice : public MetaDevice {
 public:
  std::int64_t bytes = 0;

 protected:
  void* do_allocate(std::int64_t size) override {
    bytes += size;
    return MetaDevice::do_allocate(size);
  }
};

/// Not one for each logical shard, nor one for each level of their tree. Beside it, of the step's
/// samples what they have to say, and a few blocks of rows.
TEST(Margin, ExactModeHasOneGradientOfTheCentres) {
  constexpr std::int64_t kOfShard = 14, kWidth = 64, kClasses = 100'000, kSlack = 4 << 20;
  for (const int ranks : {1, 2, 4, 8}) {
    for (const double rate : {1.0, 0.1}) {
      for (const int accumulate : {1, 2}) {
        SCOPED_TRACE(fmt::format("{} ranks, rate {}, {} passes", ranks, rate, accumulate));
        ReplicaSpec spec;
        spec.recipe.model = "mlp";
        spec.recipe.loss = "arcface";
        spec.recipe.embedding_size = kWidth;
        spec.recipe.batch_size = 8 * kOfShard;
        spec.recipe.sample_rate = rate;
        spec.input = {1, 5, 5, kClasses};
        spec.max_train_batch = kOfShard / accumulate;
        const auto model = make_model(spec);
        const auto task = task_of(spec);
        nn::Registry registry = nn::register_model(*model);
        registry.place({.rank = 0, .ranks = ranks, .shards = 8, .accumulate = accumulate});
        const nn::Plan plan = nn::plan_training(registry, batch_of(spec, spec.max_train_batch),
                                                pass_of(*task, *model, true));
        CountingDevice device;
        const int arenas = ShardTree(8 / ranks).arenas();
        const nn::Parameters parameters(device, registry, plan, arenas);
        const std::int64_t rows = registry.parameters.back()->with_gradient()[0];
        const std::int64_t gradient = 4 * rows * kWidth;
        EXPECT_GT(gradient, kClasses / ranks * (rate < 1 ? 25 : 250));
        EXPECT_LT(device.bytes, 4 * plan.elements + gradient +
                                    4 * arenas * (plan.replicated() + 1000) + 4 * rows);
        EXPECT_LT(plan.step_bytes, 4 * 8 * kOfShard * (rows + kWidth + 10) + 8192);
        const std::int64_t copied = rate < 1 ? gradient : 0, block = 4 * 4096 * kWidth;
        EXPECT_LT(plan.activation_bytes, copied + 3 * block + 4 * rows + kSlack);
      }
    }
  }
}

TEST(Margin, ProcessesSampleWhatThreadsDo) {
  const std::string threads = files_of(sampled(exact_options(4), 0.3, "adamw"));
  const testing::TemporaryDirectory folder;
  comm::Processes processes({2, 2});
  comm::run_ranks(2, [&](int process) {
    Trial two = sampled(exact_options(2), 0.3, "adamw");
    two.options.execution.in_processes = true;
    two.options.execution.transport = TransportChoice::shm;
    two.options.files.out = folder.path();
    train(processes.group(process), make_run_setup(two.options, two.data, 4), {});
  });
  EXPECT_TRUE(files_of(folder.path()) == threads);
}

/// All numbers of ranks could agree on a sum that is none of the shards'.
TEST(Margin, ExactModeLearnsWhatIsLearntWithoutIt) {
  Trial exact(exact_options(2)), plain(exact_options(1));
  plain.options.recipe.exact = false;
  expect_losses_near(exact.to_the_end().losses(), plain.to_the_end().losses(), 2e-5);
}

TEST(Margin, ShardsWithoutSamplesAreNone) {
  const auto few = [](TrainOptions options) {
    Trial made(std::move(options));
    made.options.recipe.batch_size = 3;
    made.options.max_steps = 6;
    return made;
  };
  const std::vector<double> one = few(plain_options(1)).to_the_end().losses();
  for (const int ranks : {2, 3}) {
    expect_losses_near(few(plain_options(ranks)).to_the_end().losses(), one, 2e-5);
  }
  const std::string exact = files_of(few(exact_options(1)));
  for (const int ranks : {2, 4}) EXPECT_TRUE(files_of(few(exact_options(ranks))) == exact);
}

TEST(Margin, UnderF16AllRanksSkipTheSameSteps) {
  const auto skips = [](int ranks) {
    Trial made(plain_options(ranks));
    made.options.recipe.precision = Precision::f16;
    made.options.execution.emulate_precision = true;
    const RunSetup setup = make_run_setup(made.options, made.data, ranks);
    const Outcome outcome = run(setup, {}, [](TrainLoop& loop, Device&, int) {
      loop.set_loss_scale({.scale = std::ldexp(1.0, 127)});
    });
    std::vector<double> skipped;
    for (const StepReport& step : outcome.steps) skipped.push_back(step.skipped ? 1 : 0);
    EXPECT_EQ(skipped.front(), 1);
    return skipped;
  };
  EXPECT_EQ(skips(3), skips(1));
}

}  // namespace
}  // namespace ringlet::train
