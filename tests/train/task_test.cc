// Tasks of one's own: float inputs and targets, a loss and a metric, through the library's loop and
// through a Learner. Classification said by hand is what nobody has to say.
#include "train/task/task.h"

#include <gtest/gtest.h>

#include <cmath>
#include <span>

#include "data/field_dataset.h"
#include "kernels/pointwise_loss.h"
#include "nn/layers/linear.h"
#include "nn/layers/sequential.h"
#include "nn/layers/stateless.h"
#include "nn/ops/concat.h"
#include "nn/ops/pointwise_loss.h"
#include "tests/support/files.h"
#include "tests/support/tensors.h"
#include "tests/train/runs.h"
#include "train/files/safetensors.h"
#include "train/learner.h"
#include "train/loop/plan_entries.h"
#include "train/loop/predictor.h"
#include "train/task/classification.h"

namespace ringlet::train {
namespace {

/// Two inputs, a [2] and b [1, 3], and what is to be found, y [1].
class TwoInputs : public Task {
 public:
  std::string name() const override { return "products"; }
  nn::Variable output(nn::Tape& tape, nn::Layer& model, const nn::Batch& batch) const override {
    const nn::Variable a = batch.input("a"), b = batch.input("b");
    return model.forward(tape, nn::concat({a, b.reshaped({b.shape()[0], 3})}));
  }
  nn::Variable loss(const nn::Variable& output, const nn::Batch& batch, bool,
                    const View& sum) const override {
    return nn::mean_squared_error(output, batch["y"], sum);
  }
  MetricSpec metric() const override { return {.numbers = 1}; }
  void measure(Stream& stream, const nn::Variable& output, const nn::Batch& batch,
               const View& numbers) const override {
    pointwise_loss_forward(stream, PointwiseLoss::squared_error, output.value(), batch["y"].value(),
                           numbers);
  }
  void summarize(std::span<const double> numbers, Evaluation& evaluation) const override {
    const double mean = numbers[0] / static_cast<double>(evaluation.samples);
    evaluation.figures = {{"root mean square", std::sqrt(mean)}};
  }
};

std::shared_ptr<const data::FieldDataset> numbers(std::int64_t count, std::uint32_t seed) {
  const auto a = test::random_floats(2 * count, seed), b = test::random_floats(3 * count, seed + 1);
  std::vector<float> y;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    y.push_back(a[2 * i] * b[3 * i] + 0.5F * a[2 * i + 1] - b[3 * i + 2]);
  }
  return std::make_shared<const data::FieldDataset>(
      "numbers", std::vector<data::Field>{{"a", {2}, a}, {"b", {1, 3}, b}, {"y", {1}, y}});
}

data::Splits splits() { return {.train = numbers(210, 1), .test = numbers(600, 5)}; }

std::unique_ptr<nn::Layer> make_net(const nn::ModelInput&) {
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Linear>("fc1", 5, 16);
  net->add<nn::Tanh>("tanh");
  net->add<nn::Linear>("fc2", 16, 1);
  return net;
}

TrainOptions own(TrainOptions options) {
  options.recipe.model = "numbers";
  options.recipe.batch_size = 32;
  options.recipe.epochs = 2;
  options.make_model = make_net;
  options.task = std::make_shared<const TwoInputs>();
  return options;
}

TEST(Task, ExactModeHasTheSameBytesForAnyReplicas) {
  const Outcome one = run(own(exact_options(1)), splits());
  EXPECT_LT(one.epochs.back().test.loss, 0.6 * one.epochs.front().train_loss);
  for (const int replicas : {2, 4}) {
    const Outcome more = run(own(exact_options(replicas)), splits());
    EXPECT_EQ(bytes_of(more.state), bytes_of(one.state)) << replicas;
    EXPECT_EQ(more.losses(), one.losses()) << replicas;
  }
}

TEST(Task, TheBestIsByTheLossWhereNoAccuracyIsMeasured) {
  TrainOptions options = own(plain_options(1));
  EXPECT_EQ(run(options, splits()).result.best->by, "loss");
  options.recipe.best_by = BestBy::accuracy;
  EXPECT_TRUE(testing::says(
      testing::message_of<Error>([&] { run(options, splits()); }),
      {"--best-by accuracy", "does not measure it, but loss, root mean square", "--best-by loss"}));
}

// Of six hundred test samples three passes are made, by as many ranks or by one.
TEST(Task, EvaluationHasTheSameBitsForAnyRanks) {
  const Outcome one = run(own(exact_options(1)), splits());
  const Outcome two = run(own(exact_options(2)), splits());
  const Evaluation &a = one.result.test, &b = two.result.test;
  EXPECT_EQ(a.samples, 600);
  ASSERT_EQ(a.figures.size(), 1U);
  EXPECT_EQ(a.figures.front().name, "root mean square");
  EXPECT_NEAR(a.figures.front().value, std::sqrt(a.loss), 1e-6);
  EXPECT_EQ(a.figures.front().value, b.figures.front().value);
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.right, 0);
}

TEST(Task, FastModeAgreesForUnevenReplicasWithAndWithoutOverlap) {
  TrainOptions options = own(plain_options(1));
  const Outcome one = run(options, splits());
  for (const bool overlap : {false, true}) {
    options = own(plain_options(3));
    options.execution.overlap = overlap;
    options.execution.bucket_kb = 0;
    const Outcome three = run(options, splits());
    EXPECT_LT(distance(three.state, one.state), 1e-5);
  }
}

TEST(Task, ResumesAsIfNeverStopped) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = own(exact_options(2));
  const Outcome whole = run(options, splits());
  options.files.out = folder.path();
  options.max_steps = 5;
  run(options, splits());
  options.execution.devices.resize(1);
  options.max_steps = -1;
  const RunSetup setup = make_run_setup(options, splits(), 1, read_state(folder.path()));
  EXPECT_EQ(bytes_of(run(setup).state), bytes_of(whole.state));
  const Evaluation again = evaluate(setup, folder.path() / "model.safetensors");
  EXPECT_EQ(again.figures.front().value, whole.result.test.figures.front().value);

  const auto device = open_device({});
  Predictor predictor(*device, folder.path() / "model.safetensors", setup.replica, setup.loader);
  const std::vector<float> found = predictor.logits(setup.data.test);
  const std::vector<float>& wanted = setup.data.test->fields()[2].values;
  ASSERT_EQ(found.size(), wanted.size());
  double loss = 0;
  for (std::size_t i = 0; i < found.size(); ++i) loss += std::pow(found[i] - wanted[i], 2);
  EXPECT_NEAR(loss / static_cast<double>(found.size()), whole.result.test.loss, 1e-5);
  EXPECT_EQ(predictor.width(), 1);
}

TEST(Task, ClassificationIsTheOneOfWhoeverNamesNone) {
  TrainOptions options = exact_options(2);
  const data::Splits images = formula_splits(96);
  const Outcome plain = run(options, images);
  options.task = std::make_shared<const Classification>(images.train->target_values());
  const Outcome named = run(options, images);
  EXPECT_EQ(bytes_of(named.state), bytes_of(plain.state));
  EXPECT_EQ(named.result.test.right, plain.result.test.right);
  EXPECT_EQ(named.result.test.loss, plain.result.test.loss);
}

// Images as they are, to be found again from themselves: an autoencoder.
class Itself final : public Task {
  nn::Variable loss(const nn::Variable& output, const nn::Batch& batch, bool,
                    const View& sum) const override {
    return nn::mean_squared_error(output, batch[nn::kImages], sum);
  }
};

TEST(Task, AnAutoencodersTargetsAreItsImages) {
  TrainOptions options = exact_options(2);
  const data::Splits images = formula_splits(96);
  const std::int64_t pixels = images.train->pixels();
  options.make_model = [pixels](const nn::ModelInput&) {
    auto net = std::make_unique<nn::Sequential>();
    net->add<nn::Flatten>("flatten");
    net->add<nn::Linear>("encode", pixels, 8);
    net->add<nn::Sigmoid>("sigmoid");
    net->add<nn::Linear>("decode", 8, pixels);
    return net;
  };
  options.task = std::make_shared<const Itself>();
  options.recipe.epochs = 6;
  const Outcome outcome = run(options, images);
  EXPECT_LT(outcome.epochs.back().train_loss, 0.9 * outcome.epochs.front().train_loss);
  EXPECT_EQ(outcome.result.test.figures.front().name, "loss");

  const testing::TemporaryDirectory folder;
  options.files.out = folder.path();
  const RunSetup setup = make_run_setup(options, images, 2);
  run(setup);
  const std::filesystem::path file = folder.path() / "model.safetensors";
  const auto device = open_device({});
  Predictor predictor(*device, file, setup.replica, setup.loader);
  EXPECT_EQ(predictor.width(), pixels);
  EXPECT_EQ(std::ssize(predictor.logits(images.test)), images.test->size() * pixels);
  EXPECT_TRUE(testing::says(testing::message_of<FileError>([&] { Predictor(*device, file); }),
                            {"of a task of a program's own", "ReplicaSpec"}));
}

/// A learner's losses on `ranks` ranks, and what the first says of all samples at the end.
std::pair<std::vector<double>, Evaluation> learn(int ranks) {
  const auto set = numbers(60, 1);
  std::vector<data::FieldSpec> fields(set->fields().begin(), set->fields().end());
  std::vector<double> losses;
  Evaluation evaluation;
  const testing::TemporaryDirectory folder;
  Execution execution;
  execution.devices.assign(static_cast<std::size_t>(ranks), DeviceId{});
  run_replicas(execution, [&](Device& device, comm::Communicator& all) {
    nn::ModelInput none;
    none.channels = none.outputs = 0;
    Learner learner(device, all, make_net,
                    {.input = none,
                     .fields = fields,
                     .task = std::make_shared<const TwoInputs>(),
                     .max_batch = 60});
    const std::int64_t first = all.rank() == 0 ? 0 : 41,
                       last = ranks == 1 || all.rank() == 1 ? 60 : 41;
    const auto share = [&](std::int64_t begin, std::int64_t end) {
      data::Batch batch;
      batch.n = end - begin;
      for (std::size_t i = 0; i < set->fields().size(); ++i) {
        const data::Field& field = set->fields()[i];
        batch.fields[i] = const_cast<float*>(field.values.data()) + begin * field.numbers();
      }
      return batch;
    };
    for (int step = 0; step < 5; ++step) {
      const double loss = learner.step(share(first, last), 60, {.lr = 0.1});
      if (all.rank() == 0) losses.push_back(loss);
    }
    learner.save(folder.path());
    if (all.rank() != 0) return;
    evaluation = learner.evaluate(share(0, 60));
    const SafetensorsFile file(folder.path() / "state/model.safetensors");
    EXPECT_EQ(file.metadata().at("ringlet.task"), "products");
  });
  return {losses, evaluation};
}

TEST(Task, ALearnerTakesFieldsAndSaysWhatTheTaskMeasures) {
  const auto [one, of_one] = learn(1);
  const auto [two, of_two] = learn(2);
  EXPECT_LT(one.back(), one.front());
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(two[i], one[i], 1e-5);
  EXPECT_NEAR(of_two.loss, of_one.loss, 1e-5);
  EXPECT_NEAR(of_one.figures.at(0).value, std::sqrt(of_one.loss), 1e-6);
}

TEST(Task, IsRefusedWhereTheHalvesOfTheDataDiffer) {
  data::Splits data = splits();
  data.test = std::make_shared<const data::FieldDataset>(
      "numbers", std::vector<data::Field>{{"a", {2}, test::random_floats(20, 3)}});
  EXPECT_TRUE(testing::says(
      testing::message_of<ContractError>([&] { make_run_setup(own(plain_options(1)), data, 1); }),
      {"the test data have other fields than the training data"}));
}

TEST(Task, IsOneOfAllRanks) {
  const auto told = [](const TrainOptions& options, const data::Splits& data) {
    for (const auto& [key, value] :
         plan_entries(make_run_setup(options, data, 1), {}, {}, "ring")) {
      if (key == "task") return value;
    }
    return std::string();
  };
  EXPECT_EQ(told(own(plain_options(1)), splits()), "products");
  EXPECT_EQ(told(plain_options(1), formula_splits(8)), "") << "as in plans of old";
}

TEST(Task, IsNamedInItsModelsFileWhichNoOtherTakes) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = own(plain_options(1));
  options.files.out = folder.path();
  options.max_steps = 1;
  run(options, splits());
  const std::filesystem::path file = folder.path() / "model.safetensors";
  EXPECT_EQ(SafetensorsFile(file).metadata().at("ringlet.task"), "products");

  options.files = {.init = file};
  EXPECT_NO_THROW(run(options, splits()));
  class Other final : public TwoInputs {
    std::string name() const override { return "sums"; }
  };
  options.task = std::make_shared<const Other>();
  const auto is_refused = [&](const std::function<void()>& what) {
    return testing::says(testing::message_of<Error>(what),
                         {file.string(), "for the task 'products', not for 'sums'"});
  };
  EXPECT_TRUE(is_refused([&] { run(options, splits()); }));
  EXPECT_TRUE(is_refused([&] { evaluate(make_run_setup(options, splits(), 1), file); }));
  options.files.replace_head = true;
  EXPECT_NO_THROW(run(options, splits()));
}

TEST(Task, HasNoLabelsToSmooth) {
  TrainOptions options = own(plain_options(1));
  options.recipe.label_smoothing = 0.1;
  EXPECT_TRUE(testing::says(
      testing::message_of<ContractError>([&] { make_run_setup(options, splits(), 1); }),
      {"--label-smoothing: is of the loss of classification"}));
}

/// Counts that no f32 holds: an odd number of a hundred million for each pass.
class Counts final : public Task {
 public:
  static constexpr std::int32_t kEach = 100'000'001;
  nn::Variable loss(const nn::Variable& output, const nn::Batch& batch, bool,
                    const View& sum) const override {
    return nn::mean_squared_error(output, batch["y"], sum);
  }
  nn::Variable output(nn::Tape& tape, nn::Layer& model, const nn::Batch& batch) const override {
    const nn::Variable a = batch.input("a"), b = batch.input("b");
    return model.forward(tape, nn::concat({a, b.reshaped({b.shape()[0], 3})}));
  }
  MetricSpec metric() const override { return {.numbers = 1, .dtype = DType::i32}; }
  void measure(Stream& stream, const nn::Variable&, const nn::Batch&,
               const View& numbers) const override {
    std::int32_t count = 0;
    copy_to_host(stream, numbers, &count);
    count += kEach;
    copy_from_host(stream, &count, numbers);
  }
  void summarize(std::span<const double> numbers, Evaluation& evaluation) const override {
    evaluation.figures = {{"count", numbers[0]}};
  }
};

TEST(Task, CountsAreExactBeyondWhatF32Holds) {
  TrainOptions options = own(plain_options(2));
  options.task = std::make_shared<const Counts>();
  const double count = run(options, splits()).result.test.figures.at(0).value;
  EXPECT_EQ(count, 3.0 * Counts::kEach) << "600 samples in passes of 250";
}

TEST(Task, NamesATensorThatTheBatchHasNot) {
  class Wrong final : public Task {
    nn::Variable loss(const nn::Variable& output, const nn::Batch& batch, bool,
                      const View& sum) const override {
      return nn::mean_squared_error(output, batch["z"], sum);
    }
    nn::Variable output(nn::Tape& tape, nn::Layer& model, const nn::Batch& batch) const override {
      const nn::Variable a = batch.input("a"), b = batch.input("b");
      return model.forward(tape, nn::concat({a, b.reshaped({b.shape()[0], 3})}));
    }
  };
  TrainOptions options = own(exact_options(1));
  options.task = std::make_shared<const Wrong>();
  const std::string message = testing::message_of<Error>([&] { run(options, splits()); });
  EXPECT_NE(message.find("the batch has no tensor 'z'; there are a, b, y"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace ringlet::train
