// Learner, and what a program brings of its own (a model, a strategy), against the library's own
// loop and strategies.
#include "train/learner.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iterator>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "comm/all_reduce/naive.h"
#include "nn/layers/linear.h"
#include "nn/layers/sequential.h"
#include "nn/layers/stateless.h"
#include "nn/models/mlp.h"
#include "tests/comm/processes.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"
#include "train/trainer.h"

namespace ringlet::train {
namespace {

constexpr std::int64_t kBatch = 64;
constexpr std::int64_t kLearningSteps = 6;

/// Where rank's samples of a batch begin: cuts[rank] to cuts[rank + 1].
using Cuts = std::vector<std::int64_t>;

/// The losses of kLearningSteps steps of the mlp on the formula's images, in file order.
std::vector<double> learn(const Cuts& cuts, std::int64_t world_samples = kBatch) {
  const auto dataset = formula_dataset(kBatch * kLearningSteps);
  const auto input =
      nn::ModelInput{1, static_cast<int>(dataset->height()), static_cast<int>(dataset->width()),
                     static_cast<int>(dataset->target_values())};
  std::vector<std::vector<double>> losses(cuts.size() - 1);
  Execution execution;
  execution.devices.assign(cuts.size() - 1, DeviceId{});
  run_replicas(execution, [&](Device& device, comm::Communicator& all) {
    const auto rank = static_cast<std::size_t>(all.rank());
    Learner learner(device, all, nn::make_mlp, {.input = input, .max_batch = kBatch});
    const auto share = [&](std::int64_t k) -> std::optional<data::BatchRequest> {
      if (k == kLearningSteps) return {};
      return data::BatchRequest{0, k * kBatch + cuts[rank], k * kBatch + cuts[rank + 1]};
    };
    data::Loader loader(dataset, Sampler(dataset->size(), 1, false), share,
                        {.max_batch = 2 * kBatch});
    while (const data::Batch* batch = loader.next()) {
      losses[rank].push_back(learner.step(*batch, world_samples, {.lr = 0.05, .momentum = 0.9}));
    }
  });
  for (const auto& of_rank : losses) EXPECT_EQ(of_rank, losses[0]) << "all ranks hear the same";
  return losses[0];
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2e-5 * std::abs(b[i])) << i;
}

TEST(Learner, LearnsWhatTheLibrarysLoopLearns) {
  TrainOptions options = plain_options(1, "ring");
  options.recipe.model = "mlp";
  const Outcome outcome = run(options, formula_splits(kBatch * kLearningSteps));
  expect_near(learn({0, kBatch}), outcome.losses());
}

TEST(Learner, LearnsTheSameHoweverABatchIsCut) {
  const std::vector<double> alone = learn({0, kBatch});
  EXPECT_LT(alone.back(), alone.front());
  expect_near(learn({0, 32, kBatch}), alone);
  expect_near(learn({0, 5, 40, kBatch}), alone);
  expect_near(learn({0, 0, kBatch}), alone);
}

TEST(Learner, NoticesSamplesThatDoNotAddUp) {
  const auto error_of = [](const Cuts& cuts) {
    return ringlet::testing::message_of<Error>([&] { learn(cuts, kBatch + 1); });
  };
  EXPECT_TRUE(ringlet::testing::says(error_of({0, 30, kBatch}), {"do not add up"}));
  EXPECT_TRUE(ringlet::testing::says(error_of({0, kBatch + 1}), {"max_batch"}));
}

TEST(Learner, CountsRightAnswers) {
  const auto dataset = formula_dataset(kBatch);
  run_replicas({}, [&](Device& device, comm::Communicator& all) {
    const nn::ModelInput input{1, static_cast<int>(dataset->height()),
                               static_cast<int>(dataset->width()),
                               static_cast<int>(dataset->target_values())};
    Learner learner(device, all, nn::make_mlp, {.input = input, .max_batch = kBatch});
    data::Loader loader(dataset, Sampler(kBatch, 1, false),
                        [](std::int64_t) {
                          return data::BatchRequest{0, 0, kBatch};
                        },
                        {.max_batch = kBatch});
    const std::int64_t before = learner.count_right(*loader.next());
    for (int i = 0; i < 60; ++i)
      learner.step(*loader.next(), kBatch, {.lr = 0.05, .momentum = 0.9});
    EXPECT_GT(learner.count_right(*loader.next()), before);
    EXPECT_LE(learner.count_right(*loader.next()), kBatch);
  });
}

/// The message of the error with which a learner of `make_model` ends, of whatever is done with it.
std::string error_of(
    const MakeModel& make_model, const LearnerOptions& options,
    const std::function<void(Learner& learner)>& body = [](Learner&) {}) {
  return ringlet::testing::message_of<Error>([&] {
    run_replicas({}, [&](Device& device, comm::Communicator& all) {
      Learner learner(device, all, make_model, options);
      body(learner);
    });
  });
}

constexpr nn::ModelInput kTinyInput{1, 4, 4, 3};

TEST(Learner, NamesWhatItCannotBeMadeOf) {
  using ringlet::testing::says;
  const auto none = [](const nn::ModelInput&) { return std::unique_ptr<nn::Layer>(); };
  EXPECT_TRUE(says(error_of(none, {.input = kTinyInput}), {"make_model", "null"}));
  EXPECT_TRUE(says(error_of({}, {.input = kTinyInput}), {"make_model is empty"}));
  const auto no_optimizer = [](Device&, const nn::Parameters&, const Recipe&) {
    return std::unique_ptr<Optimizer>();
  };
  EXPECT_TRUE(says(error_of(nn::make_mlp, {.input = kTinyInput, .make_optimizer = no_optimizer}),
                   {"make_optimizer", "null"}));
  EXPECT_TRUE(says(error_of(nn::make_mlp, {.input = {1, 0, 4, 3}}), {"LearnerOptions::input"}));
  EXPECT_TRUE(says(error_of(nn::make_mlp, {.input = kTinyInput, .max_batch = 0}), {"max_batch"}));
  LearnerOptions options{.input = kTinyInput};
  options.recipe.weight_decay = NAN;
  EXPECT_TRUE(says(error_of(nn::make_mlp, options), {"LearnerRecipe::weight_decay", "at least 0"}));
  options = {.input = kTinyInput};
  options.recipe.no_decay = "no";
  EXPECT_TRUE(says(error_of(nn::make_mlp, options), {"LearnerRecipe::no_decay", "norm,bias"}));
  options = {.input = kTinyInput};
  options.recipe.label_smoothing = 1;
  EXPECT_TRUE(says(error_of(nn::make_mlp, options), {"LearnerRecipe::label_smoothing", "below 1"}));
}

TEST(Learner, NamesAModelOfOtherOutputsThanClasses) {
  const auto wide = [](const nn::ModelInput&) {
    auto net = std::make_unique<nn::Sequential>();
    net->add<nn::Flatten>("flatten");
    net->add<nn::Linear>("fc", 16, 20);
    return net;
  };
  EXPECT_TRUE(ringlet::testing::says(error_of(wide, {.input = kTinyInput}),
                                     {"20 outputs", "3 classes", "ModelInput::outputs"}));
}

TEST(Learner, RefusesABatchThatNoMemoryHoldsAtOnce) {
  for (const int bits : {36, 40, 58, 62}) {
    const std::string message =
        error_of(nn::make_mlp, {.input = kTinyInput, .max_batch = std::int64_t{1} << bits});
    EXPECT_TRUE(ringlet::testing::says(message, {"memory"})) << bits;
  }
}

TEST(Learner, HasNoTwoFieldsOfAName) {
  const LearnerOptions options{.input = kTinyInput, .fields = {{"x", {1}}, {"x", {2}}}};
  EXPECT_TRUE(ringlet::testing::says(error_of(nn::make_mlp, options), {"fields have a name each"}));
}

/// Half of the sixteen numbers of a sample, and a layer of its own behind them.
std::unique_ptr<nn::Layer> make_dropping(const nn::ModelInput& input) {
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Flatten>("flatten");
  net->add<nn::Dropout>("drop", 0.5F);
  net->add<nn::Linear>("fc", 16, input.outputs);
  return net;
}

/// Samples [begin, end) of four, whose request is empty.
data::Batch unnumbered(std::int64_t begin, std::int64_t end) {
  static std::vector<float> images = [] {
    std::vector<float> numbers;
    for (int i = 0; i < 64; ++i) numbers.push_back(std::sin(static_cast<float>(i)));
    return numbers;
  }();
  static std::vector<std::int32_t> targets{0, 1, 2, 1};
  data::Batch batch;
  batch.images = images.data() + 16 * begin;
  batch.targets = targets.data() + begin;
  batch.n = end - begin;
  return batch;
}

/// What `body` gives on rank 0 of so many, each with a learner that drops.
std::vector<double> dropped(
    int ranks,
    const std::function<std::vector<double>(Learner& learner, const comm::Communicator& all)>&
        body) {
  std::vector<double> losses;
  Execution execution;
  execution.devices.assign(static_cast<std::size_t>(ranks), DeviceId{});
  run_replicas(execution, [&](Device& device, comm::Communicator& all) {
    Learner learner(device, all, make_dropping, {.input = kTinyInput, .max_batch = 4});
    const std::vector<double> own = body(learner, all);
    if (all.rank() == 0) losses = own;
  });
  return losses;
}

/// At a rate of 0 a loss tells the masks.
TEST(Learner, DropsOthersInEachStepPieceAndRank) {
  const auto steps = [](Learner& learner, const comm::Communicator& all) {
    std::vector<double> losses;
    for (int k = 0; k < 4; ++k) {
      losses.push_back(learner.step(unnumbered(0, 4), 4 * all.size(), {}));
    }
    return losses;
  };
  const std::vector<double> one = dropped(1, steps), two = dropped(2, steps);
  for (std::size_t i = 0; i < one.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) EXPECT_NE(one[i], one[k]) << i << " " << k;
    EXPECT_GT(std::abs(two[i] - one[i]), 1e-3) << "rank 1 drops what rank 0 does";
  }
  const auto in_pieces = [](std::int64_t times) {
    return dropped(1, [=](Learner& learner, const comm::Communicator&) {
      learner.accumulate(unnumbered(0, 2), 2 * times);
      return std::vector{
          learner.step(times == 1 ? unnumbered(0, 0) : unnumbered(0, 2), 2 * times, {})};
    });
  };
  EXPECT_GT(std::abs(in_pieces(2)[0] - in_pieces(1)[0]), 1e-3)
      << "the second piece drops as the first";
  const std::vector<double> cut = dropped(1, [](Learner& learner, const comm::Communicator&) {
    learner.accumulate(unnumbered(0, 1), 4);
    return std::vector{learner.step(unnumbered(1, 4), 4, {})};
  });
  EXPECT_NEAR(cut[0], one[0], 1e-6);
}

TEST(Learner, DropsByTheRequestOfABatchThatHasOne) {
  const std::vector<double> losses = dropped(1, [](Learner& learner, const comm::Communicator&) {
    std::vector<double> of_steps;
    for (const std::int64_t begin : {7, 7, 8}) {
      data::Batch batch = unnumbered(0, 4);
      batch.request = {3, begin, begin + 4};
      of_steps.push_back(learner.step(batch, 4, {}));
    }
    return of_steps;
  });
  EXPECT_EQ(losses[1], losses[0]);
  EXPECT_NE(losses[2], losses[0]);
}

TEST(Learner, DropsAfterResumingWhatItWouldHaveDropped) {
  const ringlet::testing::TemporaryDirectory out;
  const auto steps = [&](int first, int last) {
    return dropped(2, [&](Learner& learner, const comm::Communicator&) {
      if (first > 0) learner.resume(out.path());
      std::vector<double> losses;
      for (int k = first; k < last; ++k) {
        losses.push_back(learner.step(unnumbered(0, 4), 8, {.lr = 0.1}));
      }
      learner.save(out.path());
      return losses;
    });
  };
  const std::vector<double> whole = steps(0, 5);
  std::vector<double> parts = steps(0, 2);
  for (const double loss : steps(2, 5)) parts.push_back(loss);
  EXPECT_EQ(parts, whole);
}

TEST(Learner, GivesTheLastLayerARateOfItsOwn) {
  const auto moved = [](double head_lr, double lr) {
    std::vector<double> first_and_last(2);
    run_replicas({}, [&](Device& device, comm::Communicator& all) {
      LearnerOptions options{.input = kTinyInput, .max_batch = 4};
      options.recipe.head_lr = head_lr;
      Learner learner(device, all, nn::make_mlp, options);
      const auto values = [&](const nn::Parameter* of) {
        return std::vector<float>(of->value.f32(), of->value.f32() + of->value.count());
      };
      const auto& all_of_them = learner.parameters().registry().parameters;
      const auto of = std::array{all_of_them.front(), all_of_them.back()};
      const std::array before{values(of[0]), values(of[1])};
      learner.step(unnumbered(0, 4), 4, {.lr = lr});
      for (std::size_t k = 0; k < 2; ++k) {
        const std::vector<float> after = values(of[k]);
        for (std::size_t i = 0; i < after.size(); ++i) {
          first_and_last[k] += std::abs(double{after[i]} - double{before[k][i]});
        }
      }
    });
    return first_and_last;
  };
  const std::vector<double> plain = moved(0, 0.01), head = moved(0.1, 0.01), alone = moved(0.1, 0);
  EXPECT_GT(plain[0], 0);
  EXPECT_EQ(head[0], plain[0]);
  EXPECT_NEAR(head[1] / plain[1], 10, 0.05);
  EXPECT_EQ(alone[0], 0);
  EXPECT_EQ(alone[1], head[1]);
}

TEST(Learner, NamesABatchWithoutMemoryAndALabelWithoutAClass) {
  using ringlet::testing::says;
  const LearnerOptions options{.input = kTinyInput, .max_batch = 2};
  std::vector<float> images(32);
  std::vector<std::int32_t> labels{2, 0};
  const auto error = [&](float* pixels, std::int32_t* classes) {
    const data::Batch batch{.images = pixels, .targets = classes, .n = 2, .request = {}};
    const std::string counting =
        error_of(nn::make_mlp, options, [&](Learner& learner) { learner.count_right(batch); });
    const std::string stepping = error_of(
        nn::make_mlp, options, [&](Learner& learner) { learner.step(batch, 2, {.lr = 0.1}); });
    EXPECT_EQ(counting, stepping);
    return stepping;
  };
  EXPECT_TRUE(says(error(nullptr, labels.data()), {"Batch::images", "null"}));
  const auto negative = [](Learner& learner) { learner.step({.n = -1}, 2, {.lr = 0.1}); };
  EXPECT_TRUE(says(error_of(nn::make_mlp, options, negative), {"Batch::n", "at least 0"}));
  EXPECT_TRUE(says(error(images.data(), nullptr), {"Batch::targets", "null"}));
  labels[1] = 3;
  EXPECT_TRUE(says(error(images.data(), labels.data()), {"label 3 of sample 1", "0 to 2"}));
  labels[1] = -1;
  EXPECT_TRUE(says(error(images.data(), labels.data()), {"label -1 of sample 1"}));
}

TEST(Library, NamesWhatIsMissing) {
  using ringlet::testing::message_of;
  using ringlet::testing::says;
  EXPECT_TRUE(says(message_of<Error>([] { run_replicas({}, {}); }), {"run_replicas", "empty"}));
  EXPECT_TRUE(says(message_of<Error>([] { run_replicas({.devices = {}}, {}); }), {"at least one"}));
  const RunSetup of_three = make_run_setup(plain_options(2), formula_splits(64), 3);
  EXPECT_TRUE(says(message_of<Error>([&] { train(of_three, {}); }),
                   {"for 3 ranks", "there are 2", "make_run_setup()"}));
  const TrainOptions options = plain_options(1);
  EXPECT_TRUE(says(message_of<Error>([&] { make_run_setup(options, {}, 1); }), {"not null"}));
  EXPECT_TRUE(says(message_of<Error>([&] { make_run_setup(options, formula_splits(64), 0); }),
                   {"at least one rank"}));
  RunListener* const nobody = nullptr;
  EXPECT_TRUE(says(message_of<Error>([&] {
                     train(make_run_setup(options, formula_splits(64), 1), std::span(&nobody, 1));
                   }),
                   {"a listener is null"}));
}

TEST(Library, TakesABatchThatIsLargerThanAnyData) {
  TrainOptions options = plain_options(1);
  options.recipe.batch_size = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(make_run_setup(options, formula_splits(64), 1).planned_steps, 1);
}

/// Samples [first, second) of the data, handed to a learner as one batch.
using Range = std::pair<std::int64_t, std::int64_t>;

/// Runs `body` with a learner of the mlp on each rank. `batches` hands out the ranges that
/// `ranges_of(rank)` lists, one after another.
void with_learners(
    int ranks, const std::function<std::vector<Range>(std::size_t rank)>& ranges_of,
    const std::function<void(Learner& learner, data::Loader& batches, std::size_t rank)>& body,
    double timeout = 60) {
  const auto dataset = formula_dataset(kBatch * kLearningSteps);
  const nn::ModelInput input{1, static_cast<int>(dataset->height()),
                             static_cast<int>(dataset->width()),
                             static_cast<int>(dataset->target_values())};
  Execution execution{.comm_timeout = timeout};
  execution.devices.assign(static_cast<std::size_t>(ranks), DeviceId{});
  run_replicas(execution, [&](Device& device, comm::Communicator& all) {
    const auto rank = static_cast<std::size_t>(all.rank());
    const auto ranges = ranges_of(rank);
    const auto schedule = [&](std::int64_t k) -> std::optional<data::BatchRequest> {
      if (k == std::ssize(ranges)) return {};
      const auto [begin, end] = ranges[static_cast<std::size_t>(k)];
      return data::BatchRequest{0, begin, end};
    };
    data::Loader batches(dataset, Sampler(dataset->size(), 1, false), schedule,
                         {.max_batch = kBatch});
    Learner learner(device, all, nn::make_mlp, {.input = input, .max_batch = kBatch});
    body(learner, batches, rank);
  });
}

constexpr Rates kRates{.lr = 0.05, .momentum = 0.9};

std::vector<Range> whole_batches() {
  std::vector<Range> ranges;
  for (std::int64_t k = 0; k < kLearningSteps; ++k)
    ranges.emplace_back(k * kBatch, (k + 1) * kBatch);
  return ranges;
}

TEST(Learner, AccumulatesMicroBatchesIntoOneStep) {
  // Of 64 samples rank 0 has 10 + 0 + 25 in three micro-batches, rank 1 has 29 in one.
  const auto ranges_of = [](std::size_t rank) {
    std::vector<Range> ranges;
    for (std::int64_t at = 0; at < kBatch * kLearningSteps; at += kBatch) {
      if (rank == 1) {
        ranges.emplace_back(at + 35, at + kBatch);
      } else {
        ranges.insert(ranges.end(), {{at, at + 10}, {at + 10, at + 10}, {at + 10, at + 35}});
      }
    }
    return ranges;
  };
  std::vector<double> losses;
  with_learners(2, ranges_of, [&](Learner& learner, data::Loader& batches, std::size_t rank) {
    for (std::int64_t step = 0; step < kLearningSteps; ++step) {
      for (int micro = 0; rank == 0 && micro < 2; ++micro) {
        learner.accumulate(*batches.next(), kBatch);
      }
      const double loss = learner.step(*batches.next(), kBatch, kRates);
      if (rank == 0) losses.push_back(loss);
    }
    EXPECT_EQ(learner.steps(), kLearningSteps);
  });
  expect_near(losses, learn({0, kBatch}));
}

TEST(Learner, NamesMicroBatchesThatCannotBe) {
  const auto one = [](std::size_t) { return whole_batches(); };
  const auto error_of = [&](const std::function<void(Learner&, const data::Batch&)>& misuse) {
    return ringlet::testing::message_of<Error>([&] {
      with_learners(1, one, [&](Learner& learner, data::Loader& batches, std::size_t) {
        learner.accumulate(*batches.next(), 2 * kBatch);
        misuse(learner, *batches.next());
      });
    });
  };
  EXPECT_TRUE(ringlet::testing::says(error_of([](Learner& learner, const data::Batch& batch) {
                                       learner.step(batch, 3 * kBatch, {});
                                     }),
                                     {"world_samples", "micro-batches"}));
  EXPECT_TRUE(ringlet::testing::says(
      error_of([](Learner& learner, const data::Batch&) { learner.save("unused"); }),
      {"Learner::save", "between accumulate() and step()"}));
}

/// The parameters after kLearningSteps steps; the first `stop` of them by learners that saved.
std::vector<float> parameters_after_a_stop(const std::filesystem::path& out, std::int64_t stop,
                                           int ranks_before, int ranks_after) {
  const auto share = [](int ranks, std::int64_t first) {
    return [ranks, first](std::size_t rank) {
      std::vector<Range> ranges;
      const std::int64_t each = kBatch / ranks;
      for (std::int64_t k = first; k < kLearningSteps; ++k) {
        const std::int64_t begin = k * kBatch + static_cast<std::int64_t>(rank) * each;
        ranges.emplace_back(begin, begin + each);
      }
      return ranges;
    };
  };
  std::vector<float> values;
  if (stop > 0) {
    with_learners(ranks_before, share(ranks_before, 0),
                  [&](Learner& learner, data::Loader& batches, std::size_t) {
                    for (std::int64_t k = 0; k < stop; ++k) {
                      learner.step(*batches.next(), kBatch, kRates);
                    }
                    learner.save(out);
                  });
  }
  with_learners(ranks_after, share(ranks_after, stop),
                [&](Learner& learner, data::Loader& batches, std::size_t rank) {
                  if (stop > 0) learner.resume(out);
                  EXPECT_EQ(learner.steps(), stop);
                  while (const data::Batch* batch = batches.next()) {
                    learner.step(*batch, kBatch, kRates);
                  }
                  EXPECT_EQ(learner.steps(), kLearningSteps);
                  const ConstView all = learner.parameters().values();
                  if (rank != 0) return;
                  values.assign(all.f32(), all.f32() + all.count());
                });
  return values;
}

TEST(Learner, GoesOnFromItsStateAsIfNeverStopped) {
  const ringlet::testing::TemporaryDirectory out;
  const std::vector<float> whole = parameters_after_a_stop(out.path(), 0, 2, 2);
  for (std::int64_t stop = 1; stop <= kLearningSteps; ++stop) {
    EXPECT_EQ(parameters_after_a_stop(out.path(), stop, 2, 2), whole) << stop;
  }
  const std::vector<float> alone = parameters_after_a_stop(out.path(), 3, 2, 1);
  ASSERT_EQ(alone.size(), whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(alone[i], whole[i], 1e-5) << i;
}

TEST(Learner, RefusesAStateThatIsNotItsOwn) {
  const ringlet::testing::TemporaryDirectory out;
  TrainOptions options = plain_options(1);
  options.recipe.model = "lenet";
  options.files.out = out.path();
  run(options, formula_splits(kBatch));
  const auto message = ringlet::testing::message_of<Error>([&] {
    with_learners(
        2, [](std::size_t) { return whole_batches(); },
        [&](Learner& learner, data::Loader&, std::size_t) { learner.resume(out.path()); });
  });
  EXPECT_TRUE(ringlet::testing::says(message, {"model.safetensors", "fc1.weight"}));
}

TEST(Learner, NamesRanksThatMakeUnequalNumbersOfSteps) {
  const auto message = ringlet::testing::message_of<Error>([] {
    with_learners(
        3, [](std::size_t) { return whole_batches(); },
        [](Learner& learner, data::Loader& batches, std::size_t rank) {
          for (int k = 0; k < (rank == 1 ? 2 : 4); ++k) {
            learner.step(*batches.next(), 3 * kBatch, kRates);
          }
        });
  });
  EXPECT_TRUE(ringlet::testing::says(
      message, {"unequal numbers of steps", "rank 1 has 2", "ranks 0 and 2 have 3 or more"}));
}

/// Of two ranks of which rank `leaves` ends its body while the other one waits for it.
ReplicaBody leaving(int leaves, bool makes_learner) {
  return [=](Device& device, comm::Communicator& all) {
    const bool is_leaving = all.rank() == leaves;
    if (is_leaving && !makes_learner) return;
    try {
      Learner learner(device, all, nn::make_mlp, {.input = kTinyInput, .max_batch = 1});
      if (is_leaving) throw Error("the program's own");
    } catch (const Error&) {
      if (!is_leaving) throw;
    }
  };
}

TEST(Learner, NamesARankThatHasEndedItsWork) {
  const auto message = [](int leaves, bool makes_learner) {
    return ringlet::testing::message_of<Error>([&] {
      run_replicas({.devices = {2, DeviceId{}}, .comm_timeout = 3600},
                   leaving(leaves, makes_learner));
    });
  };
  EXPECT_TRUE(ringlet::testing::says(message(0, true),
                                     {"rank 0 has ended its work, and rank 1 waits for it in"}));
  EXPECT_TRUE(ringlet::testing::says(message(1, false),
                                     {"rank 1 has ended its work, and rank 0 waits for it in"}));
}

TEST(Learner, NamesARankOfAnotherProcessThatHasEndedItsWork) {
  for (const auto choice : {TransportChoice::shm, TransportChoice::gloo}) {
    const bool is_gloo = choice == TransportChoice::gloo;
    if (is_gloo && !comm::has_gloo()) continue;
    comm::Processes processes(
        {.processes = 2,
         .replicas = 1,
         .transport = is_gloo ? comm::ProcessTransport::gloo : comm::ProcessTransport::shm});
    const auto messages = comm::messages_of_ranks(2, [&](int process) {
      const Execution execution{
          .devices = {DeviceId{}}, .in_processes = true, .transport = choice, .comm_timeout = 3600};
      run_replicas(processes.group(process), execution, leaving(0, true));
    });
    EXPECT_TRUE(
        ringlet::testing::says(messages[1], {"rank 0", "has ended its work, and rank 1", "waits"}));
  }
}

TEST(Learner, ComparesWhatTheRanksMake) {
  const auto message = [](const std::function<void(LearnerOptions & options, int rank)>& change,
                          const std::function<MakeModel(int rank)>& model) {
    return ringlet::testing::message_of<comm::MismatchError>([&] {
      run_replicas({.devices = {2, DeviceId{}}}, [&](Device& device, comm::Communicator& all) {
        LearnerOptions options{.input = kTinyInput};
        change(options, all.rank());
        const Learner learner(device, all, model(all.rank()), options);
      });
    });
  };
  const auto mlp = [](int) { return MakeModel(nn::make_mlp); };
  const auto nothing = [](LearnerOptions&, int) {};
  const auto seeds = [](LearnerOptions& options, int rank) {
    options.seed = 1 + static_cast<std::uint64_t>(rank);
  };
  const auto decay = [](LearnerOptions& options, int rank) {
    options.recipe.weight_decay = 0.1 * rank;
  };
  const auto sized = [](int rank) {
    return MakeModel([rank](const nn::ModelInput& input) {
      auto net = std::make_unique<nn::Sequential>();
      net->add<nn::Flatten>("flatten");
      net->add<nn::Linear>("fc1", 16, 4 + rank);
      net->add<nn::Linear>("fc2", 4 + rank, input.outputs);
      return net;
    });
  };
  EXPECT_TRUE(ringlet::testing::says(message(seeds, mlp), {"LearnerOptions::seed", "1", "2"}));
  EXPECT_TRUE(ringlet::testing::says(message(decay, mlp), {"LearnerRecipe::weight_decay", "0.1"}));
  EXPECT_TRUE(ringlet::testing::says(message(nothing, sized), {"parameter fc"}));
}

TEST(Learner, GoesOnAfterABatchThatItHasRefused) {
  const auto last_loss = [](bool refuses) {
    double loss = 0;
    run_replicas({}, [&](Device& device, comm::Communicator& all) {
      Learner learner(device, all, nn::make_mlp, {.input = kTinyInput, .max_batch = 2});
      std::vector<float> images(32, 0.5F);
      std::vector<std::int32_t> labels{99, 0};
      const data::Batch batch{
          .images = images.data(), .targets = labels.data(), .n = 2, .request = {}};
      if (refuses) {
        EXPECT_THROW(learner.step(batch, 2, {.lr = 0.1}), ContractError);
        EXPECT_THROW(learner.accumulate(batch, 2), ContractError);
      }
      labels[0] = 1;
      learner.step(batch, 2, {.lr = 0.1});
      loss = learner.step(batch, 2, {.lr = 0.1});
      EXPECT_EQ(learner.steps(), 2);
    });
    return loss;
  };
  EXPECT_EQ(last_loss(true), last_loss(false));
}

TEST(Learner, SaysThatItHasFailedBefore) {
  run_replicas({}, [&](Device& device, comm::Communicator& all) {
    Learner learner(device, all, nn::make_mlp, {.input = kTinyInput, .max_batch = 2});
    std::vector<float> images(32, 0.5F);
    std::vector<std::int32_t> labels{1, 0};
    const data::Batch batch{
        .images = images.data(), .targets = labels.data(), .n = 2, .request = {}};
    EXPECT_THROW(learner.step(batch, 3, {.lr = 0.1}), ContractError);
    const auto again =
        ringlet::testing::message_of<ContractError>([&] { learner.step(batch, 2, {.lr = 0.1}); });
    EXPECT_TRUE(ringlet::testing::says(again, {"has failed before", "do not add up"}));
  });
}

TEST(Learner, MayTakeItsTimeAfterTheLastStep) {
  constexpr double kTimeout = 1;
  std::atomic<int> ended = 0;
  with_learners(
      2, [](std::size_t) { return whole_batches(); },
      [&](Learner& learner, data::Loader& batches, std::size_t rank) {
        learner.step(*batches.next(), 2 * kBatch, kRates);
        if (rank == 0) std::this_thread::sleep_for(std::chrono::duration<double>(2 * kTimeout));
        ++ended;
      },
      kTimeout);
  EXPECT_EQ(ended, 2);
}

TEST(Own, ModelIsTrainedInPlaceOfANamedOne) {
  TrainOptions options = plain_options(2, "ring");
  options.recipe.model = "mlp";
  const data::Splits data = formula_splits(kBatch * kLearningSteps);
  const Outcome named = run(options, data);
  options.recipe.model = "mine";
  std::atomic<int> made = 0;
  options.make_model = [&](const nn::ModelInput& input) {
    ++made;
    return nn::make_mlp(input);
  };
  EXPECT_EQ(run(options, data).losses(), named.losses());
  EXPECT_EQ(made, 3) << "one a replica, and one that is asked what layouts it takes";
}

/// The naive strategy, but counted.
class Counted : public comm::AllReduce {
 public:
  Counted(comm::Transport& transport, std::atomic<int>& calls)
      : AllReduce(transport), naive_(transport), calls_(calls) {}
  const char* name() const override { return "counted"; }
  void run(Stream& stream, View data, ReduceOp op) override {
    ++calls_;
    naive_.run(stream, data, op);
  }
  std::optional<std::int64_t> elements_sent(std::int64_t count) const override {
    return naive_.elements_sent(count);
  }

 private:
  comm::NaiveAllReduce naive_;
  std::atomic<int>& calls_;
};

TEST(Own, StrategySumsTheGradients) {
  const data::Splits data = formula_splits(kBatch * kLearningSteps);
  TrainOptions options = plain_options(3, "naive");
  const Outcome naive = run(options, data);
  std::atomic<int> calls = 0;
  options.execution.sync = "counted";
  options.execution.strategies.add(
      {"counted", comm::Needs::nothing, comm::NaiveAllReduce::path_cost,
       [&](comm::Transport& transport) { return std::make_unique<Counted>(transport, calls); }});
  EXPECT_EQ(run(options, data).losses(), naive.losses());
  EXPECT_GE(calls, 3 * kLearningSteps);
}

}  // namespace
}  // namespace ringlet::train
