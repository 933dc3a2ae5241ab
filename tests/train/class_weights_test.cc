// Class weights, and what they show of Task::weights: the divisor of a step is what the samples of
// the whole world weigh, however they are shared. PyTorch's numbers are in oracle_training_test.cc.
#include "train/task/class_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/sampling.h"
#include "kernels/elementwise.h"
#include "nn/layers/linear.h"
#include "nn/layers/sequential.h"
#include "nn/layers/stateless.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"
#include "train/learner.h"
#include "train/loop/plan_entries.h"
#include "train/task/classification.h"

namespace ringlet::train {
namespace {

constexpr int kClasses = 10;
constexpr const char* kWeights = "0.5,1,3,0,2,0.25,1,4,1,0.125";
constexpr double kOfClass[kClasses] = {0.5, 1, 3, 0, 2, 0.25, 1, 4, 1, 0.125};

std::unique_ptr<nn::Layer> make_linear(const nn::ModelInput& input) {
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Flatten>("flatten");
  net->add<nn::Linear>("fc", std::int64_t{input.channels} * input.height * input.width,
                       input.outputs);
  return net;
}

/// Steps of 64, 64 and 22 samples, twice.
data::Splits splits() { return formula_splits(150); }

TrainOptions weighted(TrainOptions options) {
  options.make_model = make_linear;
  options.recipe.epochs = 2;
  options.recipe.shuffle = true;
  options.recipe.momentum = 0;
  options.recipe.nesterov = false;
  options.recipe.weight_decay = 0;
  options.recipe.schedule = ScheduleKind::constant;
  options.recipe.class_weights = kWeights;
  return options;
}

Outcome run_from_zero(const TrainOptions& options) {
  const int ranks = static_cast<int>(options.execution.devices.size());
  return run(make_run_setup(options, splits(), ranks), {},
             [](TrainLoop& loop, Device& device, int) {
               fill(device.compute(), 0, loop.replica().parameters().values());
             });
}

/// Softmax regression in double, from zeros: the losses of all steps.
class Reference {
 public:
  explicit Reference(const Recipe& recipe) : recipe_(recipe) {}

  std::vector<double> losses() {
    const std::int64_t size = set_->size();
    const Sampler sampler(size, recipe_.seed, recipe_.shuffle);
    std::vector<double> losses;
    for (std::int64_t epoch = 0; epoch < recipe_.epochs; ++epoch) {
      for (std::int64_t begin = 0; begin < size; begin += recipe_.batch_size) {
        gradient_.assign(values_.size(), 0);
        double loss = 0, weight = 0;
        for (std::int64_t at = begin; at < std::min(begin + recipe_.batch_size, size); ++at) {
          add(sampler.index(epoch, at), loss, weight);
        }
        for (std::size_t i = 0; i < values_.size(); ++i) {
          values_[i] -= recipe_.lr * gradient_[i] / weight;
        }
        losses.push_back(loss / weight);
      }
    }
    return losses;
  }

 private:
  void add(std::int64_t sample, double& loss, double& weight) {
    std::vector<double> x;
    for (const std::uint8_t pixel : set_->image(sample)) x.push_back(pixel / 255.0);
    x.push_back(1);  // for the bias
    const auto label = static_cast<std::size_t>(set_->targets()[static_cast<std::size_t>(sample)]);
    double logits[kClasses] = {}, sum = 0;
    for (std::size_t k = 0; k < kClasses; ++k) {
      for (std::size_t i = 0; i < x.size(); ++i) logits[k] += values_[k * x.size() + i] * x[i];
      sum += std::exp(logits[k]);
    }
    weight += kOfClass[label];
    loss += kOfClass[label] * (std::log(sum) - logits[label]);
    for (std::size_t k = 0; k < kClasses; ++k) {
      const double part = kOfClass[label] * (std::exp(logits[k]) / sum - (k == label ? 1 : 0));
      for (std::size_t i = 0; i < x.size(); ++i) gradient_[k * x.size() + i] += part * x[i];
    }
  }

  Recipe recipe_;
  std::shared_ptr<const data::Dataset> set_ = splits().train;
  std::vector<double> values_ =
      std::vector<double>(kClasses * static_cast<std::size_t>(set_->pixels() + 1));
  std::vector<double> gradient_;
};

TEST(ClassWeights, DivideByThoseOfTheWholeBatchHoweverItIsShared) {
  const std::vector<double> expected = Reference(weighted(plain_options(1)).recipe).losses();
  ASSERT_EQ(expected.size(), 6U);
  EXPECT_NE(expected.back(), expected.front());
  for (const auto& [replicas, accumulate] :
       std::vector<std::pair<int, int>>{{1, 1}, {2, 1}, {3, 1}, {1, 4}, {3, 2}}) {
    TrainOptions options = weighted(plain_options(replicas));
    options.recipe.accumulate = accumulate;
    const std::vector<double> losses = run_from_zero(options).losses();
    ASSERT_EQ(losses.size(), expected.size());
    for (std::size_t i = 0; i < losses.size(); ++i) {
      EXPECT_NEAR(losses[i], expected[i], 1e-5) << replicas << " x " << accumulate << ", " << i;
    }
  }
}

TEST(ClassWeights, HaveTheSameBytesForAnyReplicasInExactMode) {
  const Outcome one = run_from_zero(weighted(exact_options(1)));
  for (const int replicas : {2, 4}) {
    const Outcome more = run_from_zero(weighted(exact_options(replicas)));
    EXPECT_EQ(bytes_of(more.state), bytes_of(one.state)) << replicas;
    EXPECT_EQ(more.losses(), one.losses()) << replicas;
  }
}

// Twice the loss over twice the samples: each number is one with another exponent.
TEST(ClassWeights, ThatAreAllTwoChangeNoBit) {
  TrainOptions options = exact_options(2);
  const Outcome plain = run(options, splits());
  options.recipe.class_weights = "2,2,2,2,2,2,2,2,2,2";
  const Outcome doubled = run(options, splits());
  EXPECT_EQ(bytes_of(doubled.state), bytes_of(plain.state));
  EXPECT_EQ(doubled.losses(), plain.losses());
  EXPECT_EQ(doubled.epochs[0].train_loss, plain.epochs[0].train_loss);
}

TEST(ClassWeights, OfAnySizeThatIsTakenTrainAsThoseOfOne) {
  TrainOptions options = weighted(plain_options(2));
  options.recipe.class_weights = kEqualWeights;
  const std::vector<double> plain = run_from_zero(options).losses();
  for (const std::string each : {"1e30", "1e-30"}) {
    std::string& all = options.recipe.class_weights = each;
    for (int k = 1; k < kClasses; ++k) all += "," + each;
    const std::vector<double> losses = run_from_zero(options).losses();
    ASSERT_EQ(losses.size(), plain.size());
    for (std::size_t i = 0; i < losses.size(); ++i) {
      EXPECT_NEAR(losses[i], plain[i], 1e-5) << each << ", " << i;
    }
  }
}

TEST(ClassWeights, AreNotInTheTestLoss) {
  TrainOptions options = plain_options(1);
  options.recipe.lr = 0;
  const Outcome plain = run(options, splits());
  options.recipe.class_weights = kWeights;
  const Outcome weighted = run(options, splits());
  EXPECT_NE(weighted.steps[0].loss, plain.steps[0].loss);
  EXPECT_EQ(weighted.epochs[0].test.loss, plain.epochs[0].test.loss);
}

/// What a learner's three steps of two micro-batches come to.
std::vector<double> learn(const std::shared_ptr<const Task>& task, double weight_of_each) {
  const auto set = formula_dataset(48);
  std::vector<float> pixels;
  for (const std::uint8_t pixel : set->images()) pixels.push_back(pixel / 255.0F);
  std::vector<std::int32_t> labels(set->targets().begin(), set->targets().end());
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    return data::Batch{
        pixels.data() + begin * set->pixels(), labels.data() + begin, end - begin, {}};
  };
  std::vector<double> losses;
  run_replicas({.devices = {DeviceId{}}}, [&](Device& device, comm::Communicator& all) {
    Learner learner(device, all, make_linear,
                    {.input = {1, 28, 28, kClasses}, .task = task, .max_batch = 48});
    for (int step = 0; step < 3; ++step) {
      learner.accumulate(part(0, 20), 48, 48 * weight_of_each);
      losses.push_back(learner.step(part(20, 48), 48, {.lr = 0.1}, 48 * weight_of_each));
    }
  });
  return losses;
}

TEST(ClassWeights, ALearnerIsToldTheSumOf) {
  const auto of_two = std::make_shared<const Classification>(kClasses, ClassificationSpec{},
                                                             std::vector<float>(kClasses, 2));
  const std::vector<double> plain = learn(nullptr, 0);
  EXPECT_EQ(learn(of_two, 2), plain);
  EXPECT_NE(learn(of_two, 0), plain) << "the mean is then over the samples";
}

TEST(ClassWeights, AreGivenByNumbersOrByTheData) {
  const std::shared_ptr<const data::Dataset> set = formula_dataset(8);
  const std::vector<float> given = class_weights(kWeights, *set);
  EXPECT_TRUE(std::equal(given.begin(), given.end(), std::begin(kOfClass), std::end(kOfClass)));

  std::map<std::int32_t, double> counts;
  for (const std::int32_t label : set->targets()) ++counts[label];
  const auto present = static_cast<double>(counts.size());
  ASSERT_LT(present, kClasses) << "one class has no sample";
  const std::vector<float> balanced = class_weights("balanced", *set);
  ASSERT_EQ(balanced.size(), static_cast<std::size_t>(kClasses));
  for (std::int32_t k = 0; k < kClasses; ++k) {
    const double all = counts[k] * static_cast<double>(balanced[static_cast<std::size_t>(k)]);
    EXPECT_NEAR(all, counts[k] > 0 ? 8 / present : 0, 1e-5) << k;
  }
}

TEST(ClassWeights, AreRefusedWhereTheyFitNoClasses) {
  const std::shared_ptr<const data::Dataset> set = formula_dataset(8);
  for (const char* text : {"1,2", "even", "1,1,1,1,1,1,1,1,1,-1", "1,1,1,1,1,1,1,1,1,nan",
                           "1,1,1,1,1,1,1,1,1,", "1,,1,1,1,1,1,1,1,1", "0,0,0,0,0,0,0,0,0,0",
                           "0,0,0,0,0,0,0,0,0,1e-45", "1e38,1,1,1,1,1,1,1,1,1"}) {
    EXPECT_TRUE(testing::says(
        testing::message_of<ContractError>([&] { class_weights(text, *set); }),
        {std::string("--class-weights: ") + text, "neither equal nor balanced nor 10 numbers"}));
  }
}

TEST(ClassWeights, OfATaskAreOneForEachSampleAndAlikeOnAllRanks) {
  struct Own : Task {
    explicit Own(std::vector<float> weights) : each(std::move(weights)) {}
    nn::Variable loss(const nn::Variable& output, const nn::Batch& batch, bool training,
                      const View& sum) const override {
      return Classification(kClasses).loss(output, batch, training, sum);
    }
    std::vector<float> weights(const data::Dataset&) const override { return each; }
    std::vector<float> each;
  };
  const auto setup_with = [](const std::vector<float>& weights) {
    TrainOptions options = plain_options(1);
    options.task = std::make_shared<const Own>(weights);
    return make_run_setup(options, splits(), 1);
  };
  const auto told = [&](float first) {
    std::vector<float> weights(150, 1);
    weights.front() = first;
    const auto entries = plan_entries(setup_with(weights), {}, {}, "ring");
    const auto is = [](const auto& entry) { return entry.first == "the samples' weights"; };
    const auto found = std::ranges::find_if(entries, is);
    return found == entries.end() ? "" : found->second;
  };
  EXPECT_NE(told(1), "");
  EXPECT_NE(told(1), told(2));
  for (const std::vector<float>& broken :
       {std::vector<float>(149, 1), std::vector<float>(150, 0), std::vector<float>(150, -1),
        std::vector<float>(150, 1e-45F)}) {
    EXPECT_TRUE(testing::says(testing::message_of<ContractError>([&] { setup_with(broken); }),
                              {"Task::weights: has a number for each sample"}));
  }
}

}  // namespace
}  // namespace ringlet::train
