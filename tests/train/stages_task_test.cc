// Tasks of one's own over the stages of a model, whose loss looks at images and fields: the bits
// are those of one stage.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/memory_dataset.h"
#include "kernels/pointwise_loss.h"
#include "nn/layers/linear.h"
#include "nn/layers/sequential.h"
#include "nn/layers/stateless.h"
#include "nn/ops/elementwise.h"
#include "nn/ops/pointwise_loss.h"
#include "tests/support/files.h"
#include "tests/support/tensors.h"
#include "tests/train/runs.h"
#include "train/learner.h"

namespace ringlet::train {

namespace {

constexpr auto kNaive = PipelineSchedule::naive;
constexpr auto kGpipe = PipelineSchedule::gpipe;
constexpr auto kOneByOne = PipelineSchedule::one_f_one_b;

/// Images that are to be found again from themselves.
class Itself : public Task {
 public:
  nn::Variable loss(const nn::Variable& output, const nn::Batch& batch, bool,
                    const View& sum) const override {
    return nn::mean_squared_error(output, batch[nn::kImages], sum);
  }
  MetricSpec metric() const override { return {.numbers = 1}; }
  void measure(Stream& stream, const nn::Variable& output, const nn::Batch& batch,
               const View& numbers) const override {
    pointwise_loss_forward(stream, PointwiseLoss::squared_error, output.value(),
                           batch[nn::kImages].reshaped(output.shape()).value(), numbers);
  }
  void summarize(std::span<const double> numbers, Evaluation& evaluation) const override {
    evaluation.figures = {{"mean square", numbers[0] / static_cast<double>(evaluation.samples)}};
  }
};

/// A field beside the images.
class Angle final : public Task {
 public:
  nn::Variable loss(const nn::Variable& output, const nn::Batch& batch, bool,
                    const View& sum) const override {
    return nn::mean_squared_error(output, batch["angle"], sum);
  }
};

std::shared_ptr<const data::Dataset> pictures(std::int64_t count, std::uint32_t seed) {
  constexpr int kSide = 8;
  const auto pixels = test::random_floats(count * kSide * kSide, seed, 0, 255);
  std::vector<float> angles(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < angles.size(); ++i) angles[i] = pixels[i * kSide * kSide] / 255;
  data::DatasetInfo info{
      .name = "pictures", .channels = 1, .height = kSide, .width = kSide, .target_names = {"all"}};
  return std::make_shared<const data::MemoryDataset>(
      info, std::vector<std::uint8_t>(pixels.begin(), pixels.end()),
      std::vector<std::int32_t>(static_cast<std::size_t>(count)),
      std::vector<data::Field>{{"angle", {1}, angles}});
}

std::unique_ptr<nn::Layer> make_coder(const nn::ModelInput& input, int answers) {
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Flatten>("flatten");
  net->add<nn::Linear>("encode", input.channels * input.height * input.width, 8);
  net->add<nn::Sigmoid>("sigmoid");
  net->add<nn::Linear>("middle", 8, 12);
  net->add<nn::Tanh>("tanh");
  net->add<nn::Linear>("decode", 12, answers);
  return net;
}

TrainOptions with_task(TrainOptions options, std::shared_ptr<const Task> task, int answers = 0) {
  options.recipe.model = "coder";
  options.recipe.batch_size = 40;
  options.recipe.epochs = 2;
  options.recipe.accumulate = 3;
  options.recipe.shuffle = true;
  options.recipe.augment = "flip";  // both ends see the same
  options.task = std::move(task);
  options.execution.measures_stages = false;
  options.make_model = [answers](const nn::ModelInput& input) {
    return make_coder(input, answers > 0 ? answers : input.channels * input.height * input.width);
  };
  return options;
}

TrainOptions cut(TrainOptions options, const std::string& stages, PipelineSchedule schedule,
                 bool recompute = false) {
  Execution& execution = options.execution;
  execution.devices.resize(execution.devices.size() * static_cast<std::size_t>(stages_in(stages)));
  execution.stages = stages;
  execution.pipeline = schedule;
  execution.recompute = recompute;
  return options;
}

data::Splits splits() { return {pictures(90, 1), pictures(30, 2)}; }

void expect_bits_of_one_stage(const TrainOptions& options) {
  const Outcome expected = run(options, splits());
  EXPECT_LT(expected.epochs.back().train_loss, expected.epochs.front().train_loss);
  for (const auto& [stages, schedule, recompute] :
       {std::tuple("2", kOneByOne, false),
        {"flatten..sigmoid,middle..decode", kNaive, false},
        {"3", kGpipe, true},
        {"3", kOneByOne, false}}) {
    SCOPED_TRACE(fmt::format("{} by {}", stages, name_of(schedule)));
    const Outcome actual = run(cut(options, stages, schedule, recompute), splits());
    EXPECT_EQ(actual.losses(), expected.losses());
    EXPECT_TRUE(bytes_of(actual.state) == bytes_of(expected.state));
    EXPECT_EQ(actual.result.test.loss, expected.result.test.loss);
    EXPECT_EQ(actual.result.test.figures.front().value, expected.result.test.figures.front().value);
  }
}

}  // namespace

TEST(StagesTask, AnAutoencoderHasTheBitsOfOneStage) {
  for (const int replicas : {1, 2}) {
    SCOPED_TRACE(replicas);
    expect_bits_of_one_stage(with_task(plain_options(replicas), std::make_shared<const Itself>()));
  }
}

TEST(StagesTask, ALossOfAFieldHasTheBitsOfOneStage) {
  expect_bits_of_one_stage(with_task(plain_options(2), std::make_shared<const Angle>(), 1));
}

TEST(StagesTask, ALearnersAutoencoderHasTheLossesOfOneStage) {
  const auto set = pictures(24, 3);
  const auto losses = [&](const std::string& stages) {
    Execution execution;
    execution.stages = stages;
    execution.devices.resize(static_cast<std::size_t>(stages_in(stages)));
    std::vector<double> told;
    run_ranks(execution, [&](Device& device, const Ranks& ranks) {
      const auto request = [](std::int64_t) -> std::optional<data::BatchRequest> {
        return data::BatchRequest{0, 0, 24};
      };
      data::Loader loader(set, Sampler(24, 1, false), request, {.max_batch = 24});
      Learner learner(device, ranks,
                      [](const nn::ModelInput& input) { return make_coder(input, 64); },
                      {.input = {1, 8, 8, 1},
                       .fields = {{"angle", {1}}},
                       .task = std::make_shared<const Itself>(),
                       .max_batch = 24,
                       .micro_batches = 3,
                       .stages = stages});
      std::vector<double> mine;
      for (int step = 0; step < 3; ++step) {
        mine.push_back(learner.step(*loader.next(), 24, {.lr = 0.1}));
      }
      mine.push_back(learner.evaluate(*loader.next()).figures.front().value);
      if (ranks.world.rank() == 0) told = mine;
    });
    return told;
  };
  const std::vector<double> expected = losses("1");
  EXPECT_LT(expected[2], expected[0]);
  for (const char* stages : {"2", "3"}) EXPECT_EQ(losses(stages), expected) << stages;
}

namespace {

/// An answer that stages would not give: made of the model's, of other things than the images, of
/// several calls.
class Otherwise final : public Itself {
 public:
  using Output = nn::Variable (*)(nn::Tape&, nn::Layer&, const nn::Batch&);
  explicit Otherwise(Output output) : output_(output) {}
  nn::Variable output(nn::Tape& tape, nn::Layer& model, const nn::Batch& batch) const override {
    return output_(tape, model, batch);
  }

 private:
  Output output_;
};

std::string refusal(const TrainOptions& options, const data::Splits& data) {
  return testing::message_of<ContractError>([&] { (void)make_run_setup(options, data, 2); });
}

}  // namespace

TEST(StagesTask, RefusesWhatStagesDoNotRun) {
  const Otherwise::Output outputs[] = {
      [](nn::Tape& tape, nn::Layer& model, const nn::Batch& batch) {
        return nn::scale(model.forward(tape, batch.input(nn::kImages)), 2);
      },
      [](nn::Tape& tape, nn::Layer& model, const nn::Batch& batch) {
        return model.forward(tape, nn::scale(batch.input(nn::kImages), 2));
      },
      [](nn::Tape& tape, nn::Layer& model, const nn::Batch& batch) {
        (void)model.forward(tape, batch.input(nn::kImages));
        return model.forward(tape, batch.input(nn::kImages));
      },
      [](nn::Tape& tape, nn::Layer& model, const nn::Batch& batch) {
        return dynamic_cast<nn::Sequential&>(model).forward(tape, batch.input(nn::kImages));
      }};
  for (const auto output : outputs) {
    const TrainOptions options =
        cut(with_task(plain_options(1), std::make_shared<const Otherwise>(output)), "2", kNaive);
    EXPECT_EQ(refusal(options, splits()),
              "--stages: the task's output() is not the model's answer to the images alone, which "
              "is all that stages run; move what it does into the model or into loss(), or leave "
              "--stages out");
  }
  // What is its own in one stage alone is as it was.
  const TrainOptions whole =
      with_task(plain_options(1), std::make_shared<const Otherwise>(outputs[0]));
  EXPECT_FALSE(run(whole, splits()).steps.empty());
}

}  // namespace ringlet::train
