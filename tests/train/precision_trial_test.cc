// Steps that are timed in two types before a run: what follows from the times, that the run is the
// same with them and without, and that it goes on where they fail.
#include "train/setup/precision_trial.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "nn/layers/linear.h"
#include "nn/layers/sequential.h"
#include "nn/layers/stateless.h"
#include "nn/tape.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"

namespace ringlet::train {
namespace {

using testing::message_of;
using testing::says;

PrecisionTimes times_of(std::vector<double> narrow, std::vector<double> f32) {
  return {.narrow_seconds = std::move(narrow),
          .f32_seconds = std::move(f32),
          .samples = 64,
          .samples_of_step = 64};
}

TEST(PrecisionTimes, OneIsFasterWhereItsMiddleIsClearlyBelowTheQuickestOfTheOther) {
  EXPECT_EQ(faster_of(times_of({.010, .011}, {.012, .013})), Faster::narrow);
  EXPECT_EQ(faster_of(times_of({.012, .013}, {.010, .011})), Faster::f32);
  EXPECT_EQ(faster_of(times_of({.010, .014}, {.012, .013})), Faster::neither);
  EXPECT_EQ(faster_of(times_of({.010, .010, .900}, {.012, .800, .900})), Faster::narrow);
  EXPECT_EQ(faster_of(times_of({.0100, .0100}, {.0104, .0104})), Faster::neither);
  EXPECT_EQ(faster_of({.why_not = "it rained"}), Faster::neither);
}

TEST(PrecisionTimes, BesideOtherWorkTheDifferenceHasToBeLarger) {
  PrecisionTimes times = times_of({.010, .011}, {.012, .013});
  times.busy = "other work was there";
  EXPECT_EQ(faster_of(times), Faster::neither);
  times.f32_seconds = {.02, .03};
  EXPECT_EQ(faster_of(times), Faster::narrow);
}

TEST(PrecisionTimes, AreTold) {
  PrecisionTimes times = times_of({.0120, .0122}, {.0104, .0104});
  EXPECT_EQ(in_words(times), "bf16 takes 12.1 ms a step here and f32 10.4 ms: f32 is faster");
  times.narrow_seconds = {.0104};
  times.samples = 32;
  times.busy = "other work was there";
  EXPECT_EQ(in_words(times),
            "bf16 takes 10.4 ms a step here and f32 10.4 ms (by 32 of a replica's 64 samples): "
            "neither is clearly faster; the machine was busy meanwhile: other work was there");
  times.narrow = Precision::f16;
  EXPECT_EQ(precision_times_of(to_text(times)), times);
  EXPECT_EQ(in_words({.narrow = Precision::f16, .why_not = "it rained"}),
            "f16 was not timed beside f32: it rained");
  EXPECT_EQ(in_words(times_of({1.25}, {.875})),
            "bf16 takes 1.25 s a step here and f32 875 ms: f32 is faster");
}

TEST(PrecisionTimes, ALongStepIsTimedByFewerSamples) {
  EXPECT_EQ(samples_to_time(256, 1e8, 1), 256);
  EXPECT_EQ(samples_to_time(256, 1e9, 1), 48);  // 50 would be possible
  EXPECT_EQ(samples_to_time(256, 1e9, 2), 96);
  EXPECT_EQ(samples_to_time(256, 1e12, 1), 16);
  EXPECT_EQ(samples_to_time(7, 1e12, 1), 7);
}

TrainOptions emulated(Precision precision, TrainOptions options) {
  options.recipe.precision = precision;
  options.execution.emulate_precision = true;
  return options;
}

/// All that a run of `setup` computes.
std::string numbers_of(const RunSetup& setup) {
  const Outcome outcome = run(setup);
  std::string numbers = bytes_of(outcome.state);
  for (const double loss : outcome.losses()) numbers += " " + std::to_string(loss);
  return numbers;
}

// With batch norm, whose running statistics a step would move, and with f16, whose scale would.
TEST(PrecisionTrial, ChangesNoNumberOfTheRun) {
  const data::Splits data = formula_splits(256, 40);
  for (const Precision precision : {Precision::bf16, Precision::f16}) {
    for (const int replicas : {1, 2}) {
      const TrainOptions options = emulated(precision, normed(plain_options(replicas)));
      const std::string untimed = numbers_of(make_run_setup(options, data, replicas));
      const RunSetup setup = make_run_setup(options, data, replicas);
      const PrecisionTimes times = time_precisions(setup, precision, nullptr);
      EXPECT_EQ(times.why_not, "");
      EXPECT_EQ(times.samples, 64 / replicas);
      EXPECT_GE(times.narrow_seconds.size(), 1U);
      EXPECT_GE(times.f32_seconds.size(), 1U);
      EXPECT_TRUE(numbers_of(setup) == untimed) << name_of(precision) << " " << replicas;
    }
  }
}

TEST(PrecisionTrial, AutoIsTheTypeThatItNames) {
  const data::Splits data = formula_splits(256, 40);
  const RunSetup setup =
      make_run_setup(emulated(Precision::automatic, normed(plain_options(1))), data, 1);
  const Precision taken = setup.options.recipe.precision;
  EXPECT_EQ(setup.replica.recipe.precision, taken);
  const bool is_faster = setup.precision_told.find("bf16 is faster") != std::string::npos;
  EXPECT_EQ(taken, is_faster ? Precision::bf16 : Precision::f32) << setup.precision_told;
  EXPECT_TRUE(says(setup.precision_told, {std::string("--precision ") + name_of(taken) + ": ",
                                          "bf16 takes ", " ms a step here and f32 "}));
  const RunSetup named = make_run_setup(emulated(taken, normed(plain_options(1))), data, 1);
  EXPECT_TRUE(numbers_of(setup) == numbers_of(named));
}

TEST(PrecisionTrial, AutoIsF32WhereAProcessorDoesNotMultiplyBf16) {
  TrainOptions options = plain_options(1);
  options.recipe.model = "mlp";
  options.recipe.precision = Precision::automatic;
  const RunSetup setup = make_run_setup(options, formula_splits(128), 1);
  EXPECT_EQ(setup.options.recipe.precision, Precision::f32);
  EXPECT_TRUE(says(setup.precision_told, {"--precision f32: bf16 was not timed beside f32: "}));
}

TEST(PrecisionTrial, AutoIsRefusedWhereTwoRunsHaveToBeAlike) {
  TrainOptions exact = exact_options(1);
  exact.recipe.precision = Precision::automatic;
  TrainOptions deterministic = plain_options(1);
  deterministic.recipe.precision = Precision::automatic;
  deterministic.execution.deterministic = true;
  for (const TrainOptions& options : {exact, deterministic}) {
    const auto set_up = [&] { (void)make_run_setup(options, formula_splits(128), 1); };
    EXPECT_TRUE(says(message_of<ContractError>(set_up),
                     {"--precision auto", "--exact and --deterministic"}));
  }
}

TEST(PrecisionTrial, IsForLongRunsThatBeginAndDoNotEmulate) {
  const data::Splits data = formula_splits(128);
  RunSetup setup = make_run_setup(emulated(Precision::bf16, plain_options(1)), data, 1);
  setup.last_step = 1000;
  EXPECT_FALSE(wants_timing(setup));
  EXPECT_EQ(told_of_precision(setup, nullptr), "");
  setup.options.execution.emulate_precision = false;
  EXPECT_TRUE(wants_timing(setup));
  setup.last_step = 99;
  EXPECT_FALSE(wants_timing(setup));
  setup.last_step = 100;
  setup.resumed.emplace();
  EXPECT_FALSE(wants_timing(setup));
  setup.resumed.reset();
  setup.options.recipe.precision = Precision::tf32;
  EXPECT_FALSE(wants_timing(setup));
}

/// y = x, on a device that has too little memory.
class Full : public nn::Layer {
 public:
  nn::Variable forward(nn::Tape& tape, const nn::Variable& x) override {
    if (tape.device().id().kind != DeviceKind::meta) throw OutOfMemoryError("the room is full");
    return x;
  }
  void register_in(nn::Registry&, const std::string&) override {}
};

TEST(PrecisionTrial, ThatFailsIsToldAndTheRunIsSetUp) {
  TrainOptions options = emulated(Precision::automatic, plain_options(2));
  options.make_model = [](const nn::ModelInput& input) {
    auto net = std::make_unique<nn::Sequential>();
    net->add<nn::Flatten>("flatten");
    net->add<nn::Linear>("fc", input.channels * input.height * input.width, input.outputs);
    net->add<Full>("full");
    return net;
  };
  const RunSetup setup = make_run_setup(options, formula_splits(128), 2);
  EXPECT_EQ(setup.options.recipe.precision, Precision::f32);
  EXPECT_TRUE(says(setup.precision_told,
                   {"--precision f32: bf16 was not timed beside f32: ", "the room is full"}));
}

}  // namespace
}  // namespace ringlet::train
