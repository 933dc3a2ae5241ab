// --freeze and --head-lr: what is not learnt stays bit for bit and costs no backward, and the head
// has a rate of its own.
#include "train/task/freezing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "nn/plan.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"
#include "train/files/safetensors.h"
#include "train/loop/replica.h"
#include "train/recipe/models.h"

namespace ringlet::train {
namespace {

using testing::message_of;
using testing::says;

/// Two steps of a residual network, with decay and momentum.
TrainOptions options_of(int replicas, const std::string& freeze) {
  TrainOptions options = normed(exact_options(replicas));
  options.recipe.weight_decay = 0.01;
  options.recipe.freeze = freeze;
  options.execution.bucket_kb = 0;
  return options;
}

data::Splits data_of() {
  static const data::Splits data = formula_splits(128);
  return data;
}

struct Names {
  std::vector<std::string> parameters, buffers;
};

Names names_of(const TrainOptions& options) {
  const RunSetup setup = make_run_setup(options, data_of(), 1);
  const auto model = make_model(setup.replica);
  const nn::Registry registry = nn::register_model(*model);
  Names names;
  for (const auto* parameter : registry.parameters) names.parameters.push_back(parameter->name);
  for (const auto* buffer : registry.buffers) names.buffers.push_back(buffer->name);
  return names;
}

Outcome start_of(TrainOptions options) {
  options.max_steps = 0;
  return run(options, data_of());
}

class Freezing : public ::testing::TestWithParam<const char*> {};

TEST_P(Freezing, WhatIsNamedStaysAndAllElseIsLearnt) {
  const std::string freeze = GetParam();
  const TrainOptions options = options_of(1, freeze);
  const Names names = names_of(options);
  const HostState start = start_of(options).state, end = run(options, data_of()).state;
  const auto is_frozen = [&](const std::string& name) {
    return freeze == "all-but-head" ? !name.starts_with("fc.") : name.starts_with(freeze + ".");
  };
  std::size_t frozen = 0;
  for (std::size_t i = 0; i < names.parameters.size(); ++i) {
    const std::string& name = names.parameters[i];
    EXPECT_EQ(end.values[i] == start.values[i], is_frozen(name)) << name;
    const std::vector<float>& velocity = end.optimizer[0].tensors[i];
    const bool rests = std::ranges::all_of(velocity, [](float v) { return v == 0; });
    EXPECT_EQ(rests, is_frozen(name)) << name;
    frozen += is_frozen(name) ? 1 : 0;
  }
  EXPECT_GT(frozen, 0U);
  for (std::size_t i = 0; i < names.buffers.size(); ++i) {
    EXPECT_EQ(end.buffers[i] == start.buffers[i], is_frozen(names.buffers[i])) << names.buffers[i];
  }
}

TEST_P(Freezing, TheNumberOfReplicasChangesNoBit) {
  const std::string one = bytes_of(run(options_of(1, GetParam()), data_of()).state);
  for (const int replicas : {2, 4}) {
    EXPECT_EQ(bytes_of(run(options_of(replicas, GetParam()), data_of()).state), one) << replicas;
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, Freezing, ::testing::Values("all-but-head", "block", "fc"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(FreezingRuns, GradientsOfWhatIsFrozenAreNotSent) {
  const auto sent = [](const std::string& freeze) {
    std::string all;
    for (const std::string& bucket : run(options_of(2, freeze), data_of()).buckets) all += bucket;
    return all;
  };
  EXPECT_NE(sent("").find("conv1.weight"), std::string::npos);
  const std::string head = sent("all-but-head");
  EXPECT_NE(head.find("fc.weight"), std::string::npos) << head;
  EXPECT_EQ(head.find("conv1.weight"), std::string::npos) << head;
}

TEST(FreezingRuns, WhatLiesBelowTheHeadHasNoBackward) {
  const auto backward_of = [](const std::string& freeze) {
    const auto device = open_device({}, {});
    const RunSetup setup = make_run_setup(options_of(1, freeze), data_of(), 1);
    return Replica(*device, setup.replica).plan().backward.flops;
  };
  EXPECT_LT(backward_of("all-but-head"), 0.1 * backward_of(""));
  EXPECT_LT(backward_of("conv1,bn1"), 0.9 * backward_of(""));
}

TEST(FreezingRuns, GoOnAsIfTheyHadNotStopped) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = options_of(2, "block,conv1");
  const std::string whole = bytes_of(run(options, data_of()).state);
  options.files.out = folder.path();
  options.max_steps = 1;
  run(options, data_of());
  SavedState saved = read_state(folder / "state");
  EXPECT_EQ(saved.recipe.freeze, "block,conv1");
  options.max_steps = -1;
  options.recipe = saved.recipe;
  const RunSetup setup = make_run_setup(options, data_of(), 2, std::move(saved));
  EXPECT_EQ(bytes_of(run(setup).state), whole);
}

TEST(FreezingRuns, UnderF16AndWithAClippedNormTheRestIsLearnt) {
  TrainOptions options = normed(plain_options(2));
  options.recipe.freeze = "all-but-head";
  options.recipe.precision = Precision::f16;
  options.recipe.clip_norm = 0.1;
  options.execution.emulate_precision = true;
  const HostState start = start_of(options).state, end = run(options, data_of()).state;
  EXPECT_EQ(end.values.front(), start.values.front());
  EXPECT_NE(end.values.back(), start.values.back());
}

/// Any one parameter, in each layout: what the others learn in a step is the same.
TEST(FreezingRuns, AParameterIsPassedOverWhereverItStands) {
  for (const auto layout : {LayoutChoice::nchw, LayoutChoice::lanes}) {
    TrainOptions options = plain_options(1);
    options.execution.layout = layout;
    options.max_steps = 1;
    const Names names = names_of(options);
    const HostState all = run(options, data_of()).state;
    for (std::size_t i = 0; i < names.parameters.size(); ++i) {
      options.recipe.freeze = names.parameters[i];
      const HostState start = start_of(options).state;
      HostState others = run(options, data_of()).state;
      EXPECT_EQ(others.values[i], start.values[i]) << names.parameters[i];
      EXPECT_NE(all.values[i], start.values[i]) << names.parameters[i];
      others.values[i] = all.values[i];
      EXPECT_LE(distance(others, all), 1e-6) << names.parameters[i];
    }
  }
}

/// The dry run asks each operation for the gradients that are wanted, and for no others.
TEST(FreezingModels, AnyLayerOfAnyModelMayBeFrozen) {
  for (const std::string& name : model_names()) {
    nn::ModelInput input = usual_input(name);
    input.outputs = 10;
    const auto model = make_model(name, input);
    const nn::Registry registry = nn::register_model(*model);
    Recipe recipe;
    std::string layer;
    for (const nn::Parameter* parameter : registry.parameters) {
      const std::string next = parameter->name.substr(0, parameter->name.find('.'));
      if (next == layer) continue;
      layer = recipe.freeze = next;
      mark_parameters(registry, recipe);
      const ReplicaSpec spec{.recipe = recipe, .input = input, .max_train_batch = 2};
      const auto task = task_of(spec);
      nn::Plan plan;
      EXPECT_NO_THROW(
          plan = nn::plan_training(registry, batch_of(spec, 2), pass_of(spec, *task, *model, true)))
          << name << " " << layer;
      EXPECT_GT(plan.frozen, 0) << name << " " << layer;
    }
  }
}

TEST(HeadRate, IsItsOwnAndTheScheduleMultipliesBoth) {
  for (const char* optimizer : {"sgd", "adamw"}) {
    TrainOptions options = plain_options(1);
    options.recipe.optimizer = optimizer;
    options.recipe.momentum = 0;
    options.recipe.lr = 0.001;
    options.recipe.warmup_epochs = 1;
    options.recipe.epochs = 2;
    options.max_steps = 1;
    const Names names = names_of(options);
    const HostState start = start_of(options).state, one = run(options, data_of()).state;
    options.recipe.head_lr = 0.01;
    const HostState other = run(options, data_of()).state;
    for (std::size_t i = 0; i < names.parameters.size(); ++i) {
      if (names.parameters[i].starts_with("fc2.")) {
        const auto moved = [&](const HostState& state) {
          double sum = 0;
          for (std::size_t k = 0; k < start.values[i].size(); ++k) {
            sum += std::abs(state.values[i][k] - start.values[i][k]);
          }
          return sum;
        };
        EXPECT_GT(moved(one), 0);
        EXPECT_NEAR(moved(other) / moved(one), 10, 0.05) << optimizer << names.parameters[i];
      } else {
        EXPECT_EQ(other.values[i], one.values[i]) << optimizer << " " << names.parameters[i];
      }
    }
  }
}

/// What lies before the head stays, as it came from a file for
/// twelve classes, and the head of ten is as in a run from nothing, and is learnt.
TEST(HeadBehindANorm, OfIresnetStartsAnewAndIsLearntAlone) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = plain_options(1);
  options.recipe.model = "iresnet18";
  options.recipe.batch_size = 4;
  options.max_steps = 1;
  options.files.out = folder.path();
  run(options, formula_splits(4, 2, 12));
  options.files.out.clear();
  const data::Splits ten = formula_splits(4, 2);
  options.max_steps = 0;
  const HostState anew = run(options, ten).state;
  options.files.init = folder / "model.safetensors";
  EXPECT_TRUE(says(message_of<Error>([&] { run(options, ten); }),
                   {"its last layer, fc, is for 12 classes, and the data has 10"}));
  options.files.replace_head = true;
  options.recipe.freeze = "all-but-head";
  const HostState start = run(options, ten).state;
  options.max_steps = 1;
  const HostState end = run(options, ten).state;
  options.recipe.head_lr = 10 * options.recipe.lr;
  const HostState faster = run(options, ten).state;

  const SafetensorsFile file(folder / "model.safetensors");
  const auto model = make_model(make_run_setup(options, ten, 1).replica);
  const nn::Registry registry = nn::register_model(*model);
  const auto expect_kept_or_anew = [&](const std::string& name, const std::vector<float>& began,
                                       const std::vector<float>& ended,
                                       const std::vector<float>& from_nothing) {
    if (name.starts_with("fc.") || name.starts_with("features.")) {
      EXPECT_EQ(began, from_nothing) << name;
      EXPECT_EQ(ended != began, name != "fc.bias" && name != "features.weight") << name;
    } else {
      EXPECT_TRUE(std::ranges::equal(began, file.f32(name))) << name;
      EXPECT_EQ(ended, began) << name;
    }
  };
  for (std::size_t i = 0; i < registry.parameters.size(); ++i) {
    const std::string& name = registry.parameters[i]->name;
    if (name == "fc.bias") continue;  // the norm behind it takes it away: it has no gradient
    expect_kept_or_anew(name, start.values[i], end.values[i], anew.values[i]);
    for (std::size_t k = 0; k < end.values[i].size(); ++k) {
      const float moved = end.values[i][k] - start.values[i][k];
      ASSERT_NEAR(faster.values[i][k] - start.values[i][k], 10 * moved, 1e-5) << name << " " << k;
    }
  }
  for (std::size_t i = 0; i < registry.buffers.size(); ++i) {
    expect_kept_or_anew(registry.buffers[i]->name, start.buffers[i], end.buffers[i],
                        anew.buffers[i]);
  }
  for (std::size_t i = 0; i < registry.counters.size(); ++i) {
    const bool is_head = registry.counters[i]->name.starts_with("features.");
    EXPECT_EQ(start.counters[i], is_head ? 0 : 1) << registry.counters[i]->name;
  }
}

TEST(FreezingSetup, RefusesWhatIsNoLayerAndWhatLeavesNothing) {
  const auto error = [](const std::string& freeze) {
    return message_of<ContractError>([&] { make_run_setup(options_of(1, freeze), data_of(), 1); });
  };
  EXPECT_TRUE(
      says(error("conv1,layr1"), {"--freeze: 'layr1' is no layer", "conv1, bn1, block, fc"}));
  EXPECT_TRUE(says(error("lay"), {"'lay' is no layer"}));
  EXPECT_TRUE(says(error("conv1,,fc"), {"'' is no layer"}));
  std::string all;
  for (const std::string& name : names_of(options_of(1, "")).parameters) all += "," + name;
  EXPECT_TRUE(says(error(all.substr(1)), {"nothing would be left to learn", "leave out one of"}));
  TrainOptions head = options_of(1, "fc");
  head.recipe.head_lr = 0.1;
  const auto error_of_head = [&] {
    return message_of<ContractError>([&] { make_run_setup(head, data_of(), 1); });
  };
  EXPECT_TRUE(says(error_of_head(), {"--freeze fc has the last layer", "leave one of them out"}));
  head.files.fine_tune = true;  // which has given the rate
  EXPECT_NO_THROW(make_run_setup(head, data_of(), 1));
  head.files.fine_tune = false;
  head.recipe.freeze = "fc.bias";
  EXPECT_NO_THROW(make_run_setup(head, data_of(), 1));
  head.recipe.lr = 0;
  EXPECT_TRUE(says(error_of_head(), {"--head-lr", "--lr, which is 0", "--freeze all-but-head"}));
  for (const auto set : {+[](Recipe& recipe) { recipe.freeze = "conv1"; },
                         +[](Recipe& recipe) { recipe.head_lr = 0.1; }}) {
    TrainOptions options = plain_options(1);
    set(options.recipe);
    options.execution.stages = "2";
    options.execution.devices.resize(2);
    EXPECT_TRUE(says(message_of<ContractError>([&] { make_run_setup(options, data_of(), 2); }),
                     {"in one stage so far"}));
  }
}

}  // namespace
}  // namespace ringlet::train
