// Training by a loss with a margin (--loss arcface and the like): what is learnt, saved and resumed
// does not depend on how many ranks have the classes' centres.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <numbers>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "data/memory_dataset.h"
#include "kernels/host_copy.h"
#include "kernels/meta_device.h"
#include "nn/layers/linear.h"
#include "nn/layers/sequential.h"
#include "nn/layers/stateless.h"
#include "tests/comm/processes.h"
#include "tests/reference/margin_softmax.h"
#include "tests/support/files.h"
#include "tests/support/tensors.h"
#include "tests/train/margin_trial.h"
#include "tests/train/runs.h"
#include "train/files/centres.h"
#include "train/files/load_model.h"
#include "train/loop/centres_in_words.h"
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

TEST(Margin, ProcessesWriteWhatThreadsWrite) {
  const std::string threads = files_of(Trial(exact_options(4)));
  const testing::TemporaryDirectory folder;
  comm::Processes processes({2, 2});
  comm::run_ranks(2, [&](int process) {
    Trial two(exact_options(2));
    two.options.execution.in_processes = true;
    two.options.execution.transport = TransportChoice::shm;
    two.options.files.out = folder.path();
    train(processes.group(process), make_run_setup(two.options, two.data, 4), {});
  });
  EXPECT_TRUE(files_of(folder.path()) == threads);
}

TEST(Margin, WhatFourSavedOthersResume) {
  for (const char* optimizer : {"sgd", "adamw"}) {
    const auto plain = [&](int ranks) {
      Trial made(plain_options(ranks));
      made.options.recipe.optimizer = optimizer;
      made.options.recipe.momentum = std::string(optimizer) == "sgd" ? 0.9 : 0;
      return made;
    };
    const std::vector<double> losses = plain(1).to_the_end().losses();
    for (const int ranks : {1, 2, 3, 8}) {
      const testing::TemporaryDirectory folder;
      Trial four = plain(4), rest = plain(ranks);
      four.options.files.out = rest.options.files.out = folder.path();
      four.options.max_steps = 4;
      four.to_the_end();
      const RunSetup setup =
          make_run_setup(rest.options, rest.data, ranks, read_state(folder.path()));
      expect_losses_near(run(setup).losses(), {losses.begin() + 4, losses.end()}, 2e-5);
    }
  }
}

TEST(Margin, ExactModeResumesOnAnotherNumberOfRanksBitForBit) {
  const testing::TemporaryDirectory folder;
  const std::string whole = files_of(Trial(exact_options(1)));
  Trial four(exact_options(4)), two(exact_options(2));
  four.options.files.out = two.options.files.out = folder.path();
  four.options.max_steps = 4;
  four.to_the_end();
  run(make_run_setup(two.options, two.data, 2, read_state(folder.path())));
  EXPECT_TRUE(files_of(folder.path()) == whole);
}

TEST(Margin, TheModelsFileHasTheModelAlone) {
  const testing::TemporaryDirectory folder;
  Trial two(plain_options(2));
  two.options.files.out = folder.path();
  const Outcome outcome = two.to_the_end();
  const SafetensorsFile model(folder / "model.safetensors"),
      centres(folder / "centres.safetensors");
  EXPECT_EQ(model.entries().size(), 4U);
  EXPECT_FALSE(model.contains("centres.weight"));
  ASSERT_EQ(centres.entries().size(), 1U);
  EXPECT_EQ(centres.entries()[0].spec.shape, (std::vector<std::int64_t>{10, kSize}));
  const auto values = centres.f32("weight");
  EXPECT_EQ(std::vector<float>(values.begin(), values.begin() + 5 * kSize),
            outcome.of_ranks[0].values.back());
  EXPECT_EQ(std::vector<float>(values.begin() + 5 * kSize, values.end()),
            outcome.of_ranks[1].values.back());
  EXPECT_TRUE(centres.metadata().at("ringlet.classes").find("class 7") != std::string::npos);
  EXPECT_EQ(read_model_info(folder / "model.safetensors")->input().outputs, kSize);
}

/// What plain formulas say of samples, by a model of make_net() and its centres.
test::reference::MarginResult worked_out(const Trial& trial, const Outcome& outcome,
                                         const data::Dataset& samples, const MarginSpec& spec) {
  const auto& values = outcome.state.values;
  const auto layer = [&](const std::vector<double>& x, std::size_t weight, bool relu) {
    std::vector<double> y;
    for (std::size_t row = 0; row < values[weight + 1].size(); ++row) {
      double sum = static_cast<double>(values[weight + 1][row]);
      for (std::size_t k = 0; k < x.size(); ++k) {
        sum += static_cast<double>(values[weight][row * x.size() + k]) * x[k];
      }
      y.push_back(relu ? std::max(0.0, sum) : sum);
    }
    return y;
  };
  const RunSetup setup = make_run_setup(trial.options, trial.data, 1);
  test::reference::Rows x, w;
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < samples.size(); ++i) {
    std::vector<double> pixels;
    for (int k = 0; k < kSide * kSide; ++k) {
      const double pixel = samples.image(i)[static_cast<std::size_t>(k)] / 255.0;
      pixels.push_back((pixel - static_cast<double>(setup.loader.mean.values()[0])) /
                       static_cast<double>(setup.loader.deviation.values()[0]));
    }
    x.push_back(layer(layer(pixels, 0, true), 2, false));
    labels.push_back(samples.targets()[static_cast<std::size_t>(i)]);
  }
  for (std::size_t k = 0; k < values.back().size(); k += kSize) {
    w.emplace_back(values.back().begin() + static_cast<std::ptrdiff_t>(k),
                   values.back().begin() + static_cast<std::ptrdiff_t>(k) + kSize);
  }
  return test::reference::margin_softmax(spec, x, w, labels, 1);
}

/// Of the test samples, how many are nearest to their own class's centre, by plain formulas.
TEST(Margin, AnEvaluationCountsTheNearestCentres) {
  Trial one(plain_options(1)), three(plain_options(3));
  three.options.recipe.loss = one.options.recipe.loss = "cosface";
  const Outcome outcome = one.to_the_end();
  const auto wanted = worked_out(one, outcome, *one.data.test, {.scale = 8});
  double loss = 0;
  for (const double of_sample : wanted.losses) loss += of_sample;
  EXPECT_EQ(outcome.result.test.right, wanted.right);
  EXPECT_GT(wanted.right, 0);
  EXPECT_NEAR(outcome.result.test.loss, loss / 30, 1e-5);
  EXPECT_EQ(three.to_the_end().result.test.right, wanted.right);
}

/// Two epochs at a rate of 0: nothing changes, so plain formulas tell the means of all of them. The
/// last step has one sample: of several ranks all but one have none then.
TEST(Margin, AnEpochTellsTheMeanAngles) {
  constexpr double kDegrees = 180 / std::numbers::pi;
  const auto trial_of = [](TrainOptions options, int classes, double filter) {
    Trial trial(std::move(options), classes);
    trial.data.train = images_of(81, classes, 1);
    trial.options.recipe.epochs = 2;
    trial.options.recipe.lr = 0;
    trial.options.recipe.filter = filter;
    return trial;
  };
  const auto told = [&](TrainOptions options, int classes, double filter = 0) {
    Trial one = trial_of(plain_options(1), classes, filter);
    const auto wanted = worked_out(one, one.to_the_end(), *one.data.train,
                                   margin_of(one.options.recipe));  // it has all centres
    const Outcome outcome = trial_of(std::move(options), classes, filter).to_the_end();
    std::vector<double> last;
    for (const EpochReport& epoch : outcome.epochs) {
      EXPECT_EQ(epoch.told.at(0).name, "target angle");
      EXPECT_EQ(epoch.told.at(1).name, "nearest wrong angle");
      EXPECT_NEAR(epoch.told[0].value, wanted.own_angles / 81 * kDegrees, 1e-4);
      if (classes > 1) {
        EXPECT_NEAR(epoch.told[1].value, wanted.other_angles / 81 * kDegrees, 1e-4);
        EXPECT_GT(std::abs(epoch.told[1].value - epoch.told[0].value), 1);
      }
      last = {epoch.told[0].value, epoch.told[1].value};
    }
    return last;
  };
  EXPECT_TRUE(std::isnan(told(plain_options(1), 1)[1]));
  EXPECT_TRUE(std::isnan(told(plain_options(3), 1)[1]));
  for (const int classes : {2, 10, 33}) {
    SCOPED_TRACE(classes);
    for (const int ranks : {1, 2, 3, 8}) {
      SCOPED_TRACE(ranks);
      told(plain_options(ranks), classes);
    }
    told(exact_options(1), classes);
    told(exact_options(4), classes);
    told(plain_options(3), classes, 0.3);
    TrainOptions accumulated = plain_options(2);
    accumulated.recipe.accumulate = 3;
    told(accumulated, classes);
  }
}

/// Of the classes of a step alone; to the own centre as without.
TEST(Margin, AnEpochOfSampledClassesTellsItsAngles) {
  const auto told = [](int ranks, double rate) {
    Trial trial(plain_options(ranks), 33);
    trial.options.recipe.lr = 0;
    trial.options.recipe.sample_rate = rate;
    const Outcome outcome = trial.to_the_end();
    return std::pair(outcome.epochs.back().told.at(0).value,
                     outcome.epochs.back().told.at(1).value);
  };
  const auto all = told(1, 1), one = told(1, 0.2), three = told(3, 0.2);
  EXPECT_NEAR(one.first, all.first, 1e-4);
  EXPECT_NEAR(three.first, all.first, 1e-4);
  EXPECT_NEAR(three.second, one.second, 1e-4);
  EXPECT_GT(one.second, all.second);
}

/// A run that goes on in the middle of an epoch tells the whole epoch.
TEST(Margin, AnEpochThatWasResumedTellsTheSameAngles) {
  const testing::TemporaryDirectory folder;
  const auto trial = [] {
    Trial trial(plain_options(2));
    trial.options.recipe.epochs = 1;
    return trial;
  };
  const Outcome whole = trial().to_the_end();
  Trial first = trial();
  first.options.files.out = folder.path();
  first.options.max_steps = 2;
  first.to_the_end();
  Trial second = trial();
  const RunSetup setup = make_run_setup(second.options, second.data, 2, read_state(folder.path()));
  const Outcome resumed = run(setup);
  ASSERT_EQ(resumed.steps.size(), 1u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(resumed.epochs.at(0).told.at(i).value, whole.epochs.at(0).told.at(i).value, 1e-9);
  }
}

TEST(Margin, StartsFromCentresByName) {
  const testing::TemporaryDirectory folder;
  Trial first(plain_options(2));
  first.options.files.out = folder.path();
  first.to_the_end();
  const std::vector<float> learnt = centres_in(folder.path());
  const auto begun = [&](const std::vector<int>& classes, const std::filesystem::path& file) {
    Trial more(plain_options(3));
    data::DatasetInfo info{
        .name = "some", .channels = 1, .height = kSide, .width = kSide, .target_names = {}};
    for (const int k : classes) info.target_names.push_back("class " + std::to_string(k));
    const std::vector<std::uint8_t> images(kSide * kSide * 4, 9);
    more.data.train = more.data.test = std::make_shared<const data::MemoryDataset>(
        info, images, std::vector<std::int32_t>{0, 1, 0, 1});
    more.options.files.init_centres = file;
    more.options.recipe.lr = 0;
    const testing::TemporaryDirectory out;
    more.options.files.out = out.path();
    more.to_the_end();
    return centres_in(out.path());
  };
  const std::vector<float> some = begun({4, 2}, folder.path());
  const auto row = [&](int k) {
    return std::vector<float>(learnt.begin() + k * kSize, learnt.begin() + (k + 1) * kSize);
  };
  std::vector<float> wanted = row(4);
  for (const float value : row(2)) wanted.push_back(value);
  EXPECT_EQ(some, wanted);
  const std::string message = testing::message_of<Error>([&] {
    begun({4, 11}, folder / "centres.safetensors");
  });
  EXPECT_TRUE(testing::says(message, {"centres.safetensors", "10 classes", "2 of the data"}))
      << message;
}

/// The message of a run on two ranks, of which one begins with broken numbers.
std::string message_of_broken(int rank, const std::string& parameter, float value) {
  Trial made(plain_options(2));
  const RunSetup setup = make_run_setup(made.options, made.data, 2);
  return testing::message_of<Error>([&] {
    run(setup, {}, [&](TrainLoop& loop, Device& device, int of) {
      for (const auto* p : loop.replica().parameters().registry().parameters) {
        if (of != rank || !p->name.starts_with(parameter)) continue;
        const View flat = p->value.reshaped({p->value.count()});
        copy_from_host(device.compute(), &value, flat.slice(0, 1));
      }
    });
  });
}

TEST(Margin, ABrokenRowIsNamedByItsClassesAndItsRank) {
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  for (const int rank : {0, 1}) {
    const std::string message = message_of_broken(rank, "centres.weight", kNone);
    const std::string own = rank == 0 ? "1 of its 30 numbers of classes 0 to 4)"
                                      : "1 of its 30 numbers of classes 5 to 9)";
    EXPECT_TRUE(testing::says(
        message, {"centres.weight itself (" + own, "(replica " + std::to_string(rank) + ")"}))
        << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

/// The others see them too, in the loss, which comes later.
TEST(Margin, BrokenEmbeddingsAreNamedByTheirRank) {
  for (const int rank : {0, 1}) {
    const std::string message = message_of_broken(rank, "fc", 3e38F);
    EXPECT_TRUE(testing::says(message,
                              {"the output of layer fc", "(replica " + std::to_string(rank) + ")"}))
        << message;
  }
}

TEST(Margin, CentresOfMoreThanTheMemoryAreRefusedBeforehand) {
  Trial two(plain_options(2));
  const RunSetup setup = make_run_setup(two.options, two.data, 4);
  const auto with = [&](std::uint64_t memory) {
    require_room(setup.options, 4, setup.replica.input.outputs, memory);
  };
  with(10 * kSize * 8 / 2);  // of 4 ranks two are here
  const std::string message =
      testing::message_of<ContractError>([&] { with(10 * kSize * 8 / 2 - 1); });
  EXPECT_TRUE(testing::says(message, {"10 classes", "of 6 numbers each", "2 of 4 replicas", "MB"}))
      << message;
}

/// What a run says at its start.
StartReport start_of(Trial trial) {
  struct Listener : RunListener {
    void started(const StartReport& report) override { said.emplace(report); }
    std::optional<StartReport> said;
  } listener;
  trial.to_the_end({&listener});
  return *listener.said;
}

/// 100 kB a row is 25,000 numbers.
TEST(Margin, ARunSaysWhatItsCentresTake) {
  constexpr int kLong = 25000;
  const auto said = [](TrainOptions options, int classes, double rate = 1) {
    Trial trial(std::move(options), classes);
    trial.options.recipe.epochs = 1;
    trial.options.recipe.embedding_size = kLong;
    trial.options.recipe.sample_rate = rate;
    return start_of(trial).centres;
  };
  const std::string kept = "; a step's logits are kept";
  EXPECT_EQ(said(plain_options(1), 33),
            "33 centres of 25000, 9.9 MB with gradient and velocity" + kept);
  EXPECT_EQ(said(plain_options(2), 33),
            "33 centres of 25000, up to 17 a replica, 5.1 MB with gradient and velocity" + kept);
  TrainOptions adamw = plain_options(1);
  adamw.recipe.optimizer = "adamw";
  adamw.recipe.momentum = 0;
  EXPECT_EQ(said(adamw, 10),
            "10 centres of 25000, 4.0 MB with gradient, exp_avg and exp_avg_sq" + kept);
  // One gradient, whatever the shards.
  EXPECT_EQ(said(exact_options(8), 16),
            "16 centres of 25000, up to 2 a replica, 0.6 MB with gradient and velocity" + kept);
}

TEST(Margin, ARunSaysWhetherItKeepsLogits) {
  constexpr std::int64_t kMost = (256 << 20) / (4 * 16);  // samples of which all are kept
  Trial exact(exact_options(2), 32);
  run(make_run_setup(exact.options, exact.data, 2), {}, [](TrainLoop& loop, Device&, int rank) {
    if (rank > 0) return;
    const auto said = [&](std::int64_t samples) {
      return centres_in_words(loop.replica().parameters(), loop.optimizer().state(), samples);
    };
    EXPECT_TRUE(said(kMost / 4).ends_with(" are kept")) << said(kMost / 4);  // in four passes
    EXPECT_TRUE(said(kMost).ends_with(" computed twice, 4,096 classes at a time")) << said(kMost);
    EXPECT_TRUE(said(kMost + 1).ends_with(" computed three times, 4,096 classes at a time"));
  });
  Trial trial(plain_options(2), 32);
  const RunSetup setup = make_run_setup(trial.options, trial.data, 2);
  run(setup, {}, [](TrainLoop& loop, Device&, int rank) {
    if (rank > 0) return;
    const auto said = [&](std::int64_t samples) {
      return centres_in_words(loop.replica().parameters(), loop.optimizer().state(), samples);
    };
    EXPECT_TRUE(said(kMost).ends_with("; a step's logits are kept")) << said(kMost);
    EXPECT_TRUE(
        said(kMost + 1).ends_with("; a step's logits are computed twice, 4,096 classes at a time"))
        << said(kMost + 1);
  });
}

/// 7,000 classes, p = .9: 6999 / 7000 log(6999 * 9) = 11.0493. 10: .9 log 81 = 3.955.
TEST(Margin, ARunSaysWhereItsScaleIsTooLow) {
  EXPECT_EQ(low_scale_in_words(8, 7000),
            "--scale 8 is below 11.0, NormFace's bound for 7,000 classes of one size: the test "
            "loss cannot get below 1.21");  // log(1 + 6999 exp(-8 * 7000 / 6999))
  EXPECT_EQ(low_scale_in_words(11.05, 7000), "");
  EXPECT_NE(low_scale_in_words(11.04, 7000), "");
  EXPECT_EQ(low_scale_in_words(3.96, 10), "");
  EXPECT_NE(low_scale_in_words(3.95, 10), "");
  EXPECT_EQ(low_scale_in_words(0.001, 1), "");
  Trial trial(plain_options(1));
  trial.options.recipe.epochs = 1;
  EXPECT_EQ(start_of(trial).low_scale, "");
  trial.options.recipe.scale = 2;
  EXPECT_EQ(start_of(trial).low_scale, low_scale_in_words(2, 10));
}

TEST(Margin, AnotherRunsCentresAreRefused) {
  const testing::TemporaryDirectory folder;
  Trial trial(plain_options(1));
  for (const char* name : {"one", "other"}) {
    std::filesystem::create_directory(folder / name);
    trial.options.files.out = folder / name;
    trial.options.recipe.seed += 1;
    trial.to_the_end();
  }
  const auto measured = [&](const char* centres) {
    trial.options.files.init_centres = folder / centres / kCentresFile;
    return evaluate(make_run_setup(trial.options, trial.data, 1),
                    folder / "one" / "model.safetensors");
  };
  EXPECT_EQ(measured("one").samples, 30);
  const std::string message = testing::message_of<Error>([&] { measured("other"); });
  EXPECT_TRUE(testing::says(message, {"other", "are not the centres that", "one"})) << message;
}

TEST(Margin, AModelOfAnotherEmbeddingsSizeIsRefusedInItsOwnWords) {
  const testing::TemporaryDirectory folder;
  Trial first(plain_options(1)), second(plain_options(1));
  first.options.files.out = folder.path();
  first.to_the_end();
  second.options.recipe.embedding_size = kSize + 2;
  second.options.files.init = folder / "model.safetensors";
  const std::string message = testing::message_of<Error>([&] { second.to_the_end(); });
  EXPECT_TRUE(testing::says(
      message, {"its embeddings have 6 numbers", "those of this run have 8", "--embedding-size 6"}))
      << message;
  second.options.files.replace_head = true;
  EXPECT_EQ(second.to_the_end().result.test.samples, 30);
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

TEST(Margin, RefusesWhatCannotBe) {
  const auto message_of = [](auto change) {
    Trial made(plain_options(1));
    change(made.options);
    return testing::message_of<ContractError>([&] { make_run_setup(made.options, made.data, 1); });
  };
  const auto says = [](const std::string& message, std::initializer_list<std::string> words) {
    return testing::says(message, words) ? std::string() : message;
  };
  EXPECT_EQ(says(message_of([](TrainOptions& o) { o.recipe.margin = "3.2"; }), {"--margin", "pi"}),
            "");
  EXPECT_EQ(
      says(message_of([](TrainOptions& o) { o.recipe.margin = "1,2"; }), {"--margin", "three"}),
      "");
  EXPECT_EQ(says(message_of([](TrainOptions& o) {
                   o.recipe.loss = kSoftmax;
                   o.recipe.scale = 64;
                   o.recipe.embedding_size = 512;
                   o.files.init_centres = "some";
                 }),
                 {"--init-centres", "--loss"}),
            "");
  Trial nine(plain_options(9));
  nine.options.recipe.class_shards = 8;
  EXPECT_EQ(
      says(testing::message_of<ContractError>([&] { make_run_setup(nine.options, nine.data, 9); }),
           {"--class-shards 8", "9 replicas"}),
      "");
  EXPECT_EQ(says(message_of([](TrainOptions& o) { o.recipe.label_smoothing = 0.1; }),
                 {"--label-smoothing", "--loss softmax"}),
            "");
}

}  // namespace
}  // namespace ringlet::train
