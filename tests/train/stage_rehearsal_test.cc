// The stages of a model at work together before a run: of layers whose times are known, what is
// measured and what is forecast of a step are compared with these times and with the run's steps.
#include "train/setup/stage_rehearsal.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "kernels/elementwise.h"
#include "nn/layers/linear.h"
#include "nn/layers/sequential.h"
#include "nn/layers/stateless.h"
#include "nn/tape.h"
#include "tests/train/runs.h"
#include "train/setup/stages_setup.h"

namespace ringlet::train {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

/// Played work: each unit that is at it beside another one goes on at `beside` of its pace, as
/// programs do that share a memory.
struct Played {
  double beside = 1;
  std::atomic<int> at_work{0};

  void work(double milliseconds) {
    constexpr double kSlice = 1;
    using Clock = std::chrono::steady_clock;
    at_work.fetch_add(1);
    for (double left = milliseconds; left > 0;) {
      const Clock::time_point begin = Clock::now();
      std::this_thread::sleep_for(Milliseconds(std::min(kSlice, left)));
      const double passed = Milliseconds(Clock::now() - begin).count();
      left -= passed * (at_work.load() > 1 ? beside : 1);
    }
    at_work.fetch_sub(1);
  }
};

/// y = x, which takes so many milliseconds forward and backward.
class Slow : public nn::Layer {
 public:
  Slow(Played& played, double forward, double backward)
      : played_(played), forward_(forward), backward_(backward) {}

  nn::Variable forward(nn::Tape& tape, const nn::Variable& x) override {
    const bool is_dry = tape.device().id().kind == DeviceKind::meta;
    if (!is_dry) played_.work(forward_);
    const nn::Variable y = tape.make(x.shape(), x.layout(), x.dtype());
    scale(tape.stream(), 1, x.value(), 0, y.value());
    tape.record("slow", {x}, y, [=, this](nn::Backward& backward) {
      if (!is_dry) played_.work(backward_);
      const auto [dx, beta] = backward.target(x);
      scale(backward.stream(), 1, backward.gradient(y), beta, dx);
    });
    return y;
  }

 private:
  Played& played_;
  double forward_, backward_;
};

constexpr double kForward[] = {8, 12}, kBackward[] = {16, 24};
constexpr int kMicroBatches = 4;

TrainOptions played_options(Played& played, PipelineSchedule schedule) {
  TrainOptions options = plain_options(2);
  options.recipe.model = "played";
  options.recipe.accumulate = kMicroBatches;
  options.execution.stages = "flatten..slow1,fc2..slow2";
  options.execution.pipeline = schedule;
  options.make_model = [&played](const nn::ModelInput& input) {
    auto net = std::make_unique<nn::Sequential>();
    net->add<nn::Flatten>("flatten");
    net->add<nn::Linear>("fc1", input.channels * input.height * input.width, 8);
    net->add<Slow>("slow1", played, kForward[0], kBackward[0]);
    net->add<nn::Linear>("fc2", 8, input.outputs);
    net->add<Slow>("slow2", played, kForward[1], kBackward[1]);
    return net;
  };
  return options;
}

constexpr PipelineSchedule kAll[] = {PipelineSchedule::naive, PipelineSchedule::gpipe,
                                     PipelineSchedule::one_f_one_b};

/// By the middle of so many steps.
double step_of_run(const RunSetup& setup) {
  const Outcome outcome = run(setup);
  EXPECT_EQ(outcome.epochs.front().stages->predicted_step_seconds,
            setup.stages->forecast.step.seconds);
  return outcome.epochs.front().stages->step_seconds;
}

/// The figures of a forecast that the played times contradict. A synchronization that waited for a
/// unit would take 8 ms and more; on a machine that has more to do than processors its thread may
/// wait for one as well.
std::set<std::string> wrong_figures(const Forecast& forecast) {
  constexpr double kLittle = kForward[0] / 2;
  std::set<std::string> wrong;
  const auto expect = [&wrong](const std::string& name, double seconds, double least, double most) {
    if (1e3 * seconds < least || 1e3 * seconds > most) wrong.insert(name);
  };
  for (const StageRow& row : forecast.stages) {
    const auto i = static_cast<std::size_t>(row.stage);
    expect(fmt::format("forward {}", i), row.forward, .95 * kForward[i], 1.05 * kForward[i]);
    expect(fmt::format("backward {}", i), row.backward, .95 * kBackward[i], 1.05 * kBackward[i]);
    expect(fmt::format("update {}", i), row.update, 0, kLittle);
    expect(fmt::format("sync {}", i), forecast.times.sync[i], 0, kLittle);
  }
  expect("activation", forecast.times.activation[0], 0, kLittle);
  expect("gradient", forecast.times.gradient[0], 0, kLittle);
  return wrong;
}

// What else this machine does can spoil a figure of a turn, and not of all of them.
TEST(StageRehearsal, MeasuresWhatIsKnown) {
  constexpr int kTurns = 10;
  Played played;
  for (const bool recompute : {false, true}) {
    TrainOptions options = played_options(played, PipelineSchedule::one_f_one_b);
    options.execution.recompute = recompute;
    std::set<std::string> always_wrong;
    for (int turn = 0; turn < kTurns && (turn == 0 || !always_wrong.empty()); ++turn) {
      const RunSetup setup = make_run_setup(options, formula_splits(64), 2);
      const Forecast& forecast = setup.stages->forecast;
      ASSERT_TRUE(forecast.together);
      ASSERT_EQ(forecast.stages.size(), 2U);
      const std::set<std::string> wrong = wrong_figures(forecast);
      if (turn == 0) always_wrong = wrong;
      std::erase_if(always_wrong, [&](const std::string& name) { return !wrong.contains(name); });
    }
    EXPECT_EQ(always_wrong, std::set<std::string>()) << (recompute ? "recomputed" : "kept");
  }
}

// What parts cost alone would be 30 % too little here, in each turn. What else this machine does
// can spoil a turn, and not all of them.
TEST(StageRehearsal, ForecastsAStepWithinFivePercent) {
  constexpr int kTurns = 5;
  constexpr double kClose = .05;
  Played played;
  played.beside = .6;
  for (const PipelineSchedule schedule : kAll) {
    std::string turns;
    double error = 1;
    for (int turn = 0; turn < kTurns && error > kClose; ++turn) {
      const RunSetup setup =
          make_run_setup(played_options(played, schedule), formula_splits(std::int64_t{7} * 64), 2);
      const double forecast = setup.stages->forecast.step.seconds, measured = step_of_run(setup);
      turns += fmt::format(" {:.1f} ms and {:.1f} ms;", 1e3 * forecast, 1e3 * measured);
      error = std::abs(forecast / measured - 1);
    }
    EXPECT_LE(error, kClose) << name_of(schedule) << ", forecast and measured:" << turns;
  }
}

TEST(StageRehearsal, IsAsLongAsASecondAllows) {
  StageRehearsal rehearsal{.sizes = std::vector<std::int64_t>(16, 8)};
  choose_length(rehearsal, 2, 1e-4);
  EXPECT_EQ(rehearsal.steps, 25);
  choose_length(rehearsal, 2, .2);
  EXPECT_EQ(rehearsal.steps, 3);
  choose_length(rehearsal, 2, 2);
  EXPECT_EQ(rehearsal.steps, 1);
  EXPECT_EQ(rehearsal.sizes.size(), 16U);
  choose_length(rehearsal, 2, 5);
  EXPECT_EQ(rehearsal.sizes.size(), 8U);
  choose_length(rehearsal, 3, 100);
  EXPECT_EQ(rehearsal.sizes.size(), 6U);
}

}  // namespace
}  // namespace ringlet::train
