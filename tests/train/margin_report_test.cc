// Training by a loss with a margin: what a run and its evaluation tell of it, and what they refuse.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "kernels/host_copy.h"
#include "tests/reference/margin_softmax.h"
#include "tests/support/files.h"
#include "tests/train/margin_trial.h"
#include "tests/train/runs.h"
#include "train/files/centres.h"
#include "train/loop/centres_in_words.h"

namespace ringlet::train {
namespace {

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
