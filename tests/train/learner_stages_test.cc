// A learner of a model in stages, against one of the same model in one stage with as many
// micro-batches: bit for bit, and from each other's states.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/elementwise.h"
#include "nn/layers/linear.h"
#include "nn/layers/sequential.h"
#include "nn/layers/stateless.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"
#include "train/learner.h"
#include "train/trainer.h"

namespace ringlet::train {
namespace {

constexpr std::int64_t kBatchOfAll = 26, kStepsInAll = 5;

std::unique_ptr<nn::Layer> make_encoder_and_decoder(const nn::ModelInput& input) {
  auto net = std::make_unique<nn::Sequential>();
  auto& encoder = net->add<nn::Sequential>("encoder");
  encoder.add<nn::Flatten>("flatten");
  encoder.add<nn::Linear>("fc", input.channels * input.height * input.width, 12);
  encoder.add<nn::ReLU>("relu");
  auto& decoder = net->add<nn::Sequential>("decoder");
  decoder.add<nn::Dropout>("dropout", 0.3F);
  decoder.add<nn::Linear>("fc", 12, 10);
  decoder.add<nn::Tanh>("tanh");
  net->add<nn::Linear>("head", 10, input.outputs);
  return net;
}

/// Its last layer has no parameters.
std::unique_ptr<nn::Layer> make_squashed(const nn::ModelInput& input) {
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Flatten>("flatten");
  net->add<nn::Linear>("fc", input.channels * input.height * input.width, input.outputs);
  net->add<nn::Tanh>("tanh");
  return net;
}

/// Learns nothing, and keeps as many arenas as there are parameters, each of one's rows.
class RowCounter final : public Optimizer {
 public:
  RowCounter(Device& device, const nn::Parameters& parameters)
      : Optimizer(device, parameters, arenas_of(parameters)) {}
  void step(ConstView) override {
    for (std::size_t i = 0; i < state().size(); ++i) {
      fill(stream(), static_cast<float>(++count_), arena(i));
    }
  }

 private:
  static std::vector<ArenaSpec> arenas_of(const nn::Parameters& parameters) {
    std::vector<ArenaSpec> arenas;
    for (const nn::Parameter* parameter : parameters.registry().parameters) {
      arenas.emplace_back("rows of " + parameter->name, parameter->id);
    }
    return arenas;
  }
  int count_ = 0;
};

struct Way {
  std::string stages = "1";
  int replicas = 1;
  PipelineSchedule pipeline = PipelineSchedule::one_f_one_b;
  bool recompute = false;
  int micro_batches = 4;
  MakeModel make_model = make_encoder_and_decoder;
  MakeOptimizer make_optimizer{};
};

struct Learnt {
  std::vector<double> losses;  // of each step, and of the evaluation behind all
  std::int64_t right = 0;
  bool operator==(const Learnt&) const = default;
};

/// Steps from `first` on, after the state in `from` if that is anything; `to`: where a state goes.
/// What each rank is told must be the same.
Learnt learn(const Way& way, std::int64_t first, std::int64_t end,
             const std::filesystem::path& from = {}, const std::filesystem::path& to = {}) {
  const auto dataset = formula_dataset(kBatchOfAll * kStepsInAll);
  const nn::ModelInput input{1, static_cast<int>(dataset->height()),
                             static_cast<int>(dataset->width()),
                             static_cast<int>(dataset->target_values())};
  Execution execution;
  execution.stages = way.stages;
  execution.devices.resize(static_cast<std::size_t>(stages_in(way.stages) * way.replicas));
  std::mutex mutex;
  std::vector<Learnt> told;
  run_ranks(execution, [&](Device& device, const Ranks& ranks) {
    Learner learner(device, ranks, way.make_model,
                    {.input = input,
                     .max_batch = kBatchOfAll,
                     .recipe = {OptimizerSpec{.optimizer = "adamw"}},
                     .make_optimizer = way.make_optimizer,
                     .micro_batches = way.micro_batches,
                     .stages = way.stages,
                     .pipeline = way.pipeline,
                     .recompute = way.recompute});
    if (!from.empty()) learner.resume(from);
    const std::int64_t share = kBatchOfAll / way.replicas;
    const auto request = [&](std::int64_t k) -> std::optional<data::BatchRequest> {
      if (first + k > end) return {};
      const std::int64_t begin = (first + k) % kStepsInAll * kBatchOfAll + ranks.replica() * share;
      return data::BatchRequest{0, begin, begin + share};
    };
    data::Loader loader(dataset, Sampler(dataset->size(), 1, false), request,
                        {.max_batch = kBatchOfAll});
    Learnt mine;
    for (std::int64_t k = first; k < end; ++k) {
      mine.losses.push_back(learner.step(*loader.next(), kBatchOfAll, {.lr = 0.01}));
    }
    if (!to.empty()) learner.save(to);
    const Evaluation tested = learner.evaluate(*loader.next());
    mine.right = tested.right;
    if (ranks.replica() == 0) mine.losses.push_back(tested.loss);
    const std::lock_guard lock(mutex);
    if (ranks.replica() == 0) told.push_back(mine);
  });
  for (const Learnt& of_rank : told) EXPECT_EQ(of_rank, told.front());
  return told.front();
}

constexpr auto kNaive = PipelineSchedule::naive;
constexpr auto kGpipe = PipelineSchedule::gpipe;
constexpr auto kOneByOne = PipelineSchedule::one_f_one_b;

}  // namespace

TEST(LearnerStages, LearnBitForBitWhatOneStageLearns) {
  for (const int replicas : {1, 2}) {
    const Learnt expected = learn({.replicas = replicas}, 0, kStepsInAll);
    ASSERT_EQ(expected.losses.size(), kStepsInAll + 1U);
    EXPECT_LT(expected.losses[kStepsInAll - 1], expected.losses[0]);
    for (const auto& [stages, schedule] :
         {std::pair{"encoder,decoder..head", kOneByOne}, std::pair{"encoder..decoder,head", kGpipe},
          std::pair{"3", kOneByOne}, std::pair{"2", kNaive}}) {
      for (const bool recompute : {false, true}) {
        SCOPED_TRACE(std::string(stages) + " by " + name_of(schedule));
        EXPECT_EQ(learn({stages, replicas, schedule, recompute}, 0, kStepsInAll), expected);
      }
    }
  }
}

TEST(LearnerStages, TakeFewerSamplesThanMicroBatches) {
  const Way alone{.micro_batches = 40};
  Way cut = alone;
  cut.stages = "3";
  EXPECT_EQ(learn(cut, 0, 2), learn(alone, 0, 2));
}

TEST(LearnerStages, MayHaveNothingToLearn) {
  for (const int replicas : {1, 2}) {
    const Way alone{.replicas = replicas, .make_model = make_squashed};
    Way cut = alone;
    cut.stages = "flatten..fc,tanh";
    EXPECT_EQ(learn(cut, 0, 2), learn(alone, 0, 2));
  }
}

TEST(LearnerStages, GoOnFromEachOthersStates) {
  const testing::TemporaryDirectory folder;
  const Learnt whole = learn({}, 0, kStepsInAll);
  const Way cut{.stages = "encoder,decoder,head"};
  for (const bool from_cut : {true, false}) {
    const std::filesystem::path state = folder.path() / (from_cut ? "cut" : "alone");
    std::filesystem::create_directory(state);
    (void)learn(from_cut ? cut : Way{}, 0, 3, {}, state);
    const Learnt rest = learn(from_cut ? Way{} : cut, 3, kStepsInAll, state);
    EXPECT_EQ(rest.losses, std::vector<double>(whole.losses.begin() + 3, whole.losses.end()));
    EXPECT_EQ(rest.right, whole.right);
  }
}

TEST(LearnerStages, HandOnWhatEachStageAloneKeeps) {
  const testing::TemporaryDirectory folder;
  Way alone;
  alone.make_optimizer = [](Device& device, const nn::Parameters& parameters, const Recipe&) {
    return std::make_unique<RowCounter>(device, parameters);
  };
  Way cut = alone;
  cut.stages = "encoder,decoder,head";
  for (const char* out : {"alone", "cut", "again"}) std::filesystem::create_directory(folder / out);
  (void)learn(alone, 0, 2, {}, folder / "alone");
  (void)learn(cut, 2, 2, folder / "alone", folder / "cut");
  (void)learn(alone, 2, 2, folder / "cut", folder / "again");
  const auto kept = [&](const char* out) {
    return testing::read_file(std::filesystem::path(folder / out) / "state/optimizer.safetensors");
  };
  EXPECT_EQ(kept("cut"), kept("alone"));
  EXPECT_EQ(kept("again"), kept("alone"));
}

namespace {

std::string error_of(
    const std::string& world, const LearnerOptions& options,
    const std::function<void(Learner&)>& body = [](Learner&) {}) {
  Execution execution;
  execution.stages = world;
  execution.devices.resize(static_cast<std::size_t>(stages_in(world)));
  return ringlet::testing::message_of<Error>([&] {
    run_ranks(execution, [&](Device& device, const Ranks& ranks) {
      Learner learner(device, ranks, make_encoder_and_decoder, options);
      body(learner);
    });
  });
}

}  // namespace

TEST(LearnerStages, NameWhatTheyCannotBeMadeOf) {
  LearnerOptions options{.input = {1, 4, 4, 3}, .max_batch = 8, .micro_batches = 2};
  const auto expect = [](const std::string& error, const std::string& part) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  expect(error_of("2", options),
         "LearnerOptions::stages are not what the ranks are cut into; give it Execution::stages");
  options.stages = "encoder,decoder..foot";
  expect(error_of("2", options), "there is no unit 'foot'");
  options.stages = "2";
  expect(error_of("2", options, [](Learner& learner) { learner.accumulate({}, 1); }),
         "is for a model in one stage; LearnerOptions::micro_batches are those of a step");
  options.stages = "1";
  options.recompute = true;
  expect(error_of("1", options), "LearnerOptions::recompute is for a model in several stages");
  options.recompute = false;
  options.micro_batches = 0;
  expect(error_of("1", options), "LearnerOptions::micro_batches is at least 1");
}

}  // namespace ringlet::train
