#include "bench/training/training_bench.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "base/core_pace.h"
#include "base/median.h"
#include "base/processors.h"
#include "base/stop_request.h"
#include "nn/ops/softmax_cross_entropy.h"
#include "train/trainer.h"

namespace ringlet::bench {

namespace {

/// Floating-point operations of a training step for one sample.
double flops_per_sample(const train::ReplicaSpec& spec, bool fuse) {
  const auto model = train::make_model(spec);
  const nn::Registry registry = nn::register_model(*model);
  constexpr std::int64_t kSamples = kLanes;  // a full block, so that no lane is idle
  const nn::InputSpec input{{kSamples, spec.input.channels, spec.input.height, spec.input.width},
                            spec.layout};
  const nn::Plan plan = nn::plan_training(*model, registry, input, nn::softmax_cross_entropy, fuse);
  return (plan.forward.flops + plan.backward.flops) / kSamples;
}

class Steps : public train::RunListener {
 public:
  void step_done(const train::StepReport& report) override { reports.push_back(report); }
  std::vector<train::StepReport> reports;
};

train::PhaseSeconds divided(const train::PhaseSeconds& sum, double by) {
  return {sum.data / by, sum.forward / by, sum.backward / by, sum.sync / by, sum.update / by};
}

/// Seconds of the loop's first step; negative where somebody asked to stop.
double time_one_step(train::TrainLoop& loop) {
  const auto begin = std::chrono::steady_clock::now();
  if (!loop.step()) return -1;
  loop.settle();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// False where somebody asked to stop.
bool run_steps(train::TrainLoop& loop, std::int64_t steps) {
  for (std::int64_t i = 0; i < steps; ++i) {
    if (!loop.step()) return false;
  }
  return true;
}

/// Where round i of a measurement begins, or the one before it ends.
std::int64_t begin_of_round(std::int64_t i, std::int64_t rounds, std::int64_t steps) {
  return i * steps / rounds;
}

/// `phases`: the loop's at the begin of each round, and at the last one's end.
std::vector<SpeedRound> rounds_of(std::span<const train::StepReport> steps,
                                  std::span<const train::PhaseSeconds> phases) {
  const auto count = static_cast<std::int64_t>(phases.size()) - 1;
  std::vector<SpeedRound> rounds;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t begin = begin_of_round(i, count, std::ssize(steps));
    const std::int64_t end = begin_of_round(i + 1, count, std::ssize(steps));
    double seconds = 0, samples = 0;
    for (std::int64_t step = begin; step < end; ++step) {
      seconds += steps[static_cast<std::size_t>(step)].seconds;
      samples += static_cast<double>(steps[static_cast<std::size_t>(step)].samples);
    }
    const auto at = static_cast<std::size_t>(i);
    rounds.push_back({samples / seconds,
                      divided(phases[at + 1].since(phases[at]), static_cast<double>(end - begin))});
  }
  return rounds;
}

}  // namespace

StepSeconds step_seconds(std::span<const train::StepReport> steps) {
  double all = 0;
  std::vector<double> known;
  bool begins = true;  // the host knows when
  for (const train::StepReport& step : steps) {
    all += step.seconds;
    if (begins && step.awaited) known.push_back(step.seconds);
    begins = step.awaited;
  }
  const double mean = all / static_cast<double>(steps.size());
  if (known.empty()) return {mean, mean, mean};
  const double least = *std::min_element(known.begin(), known.end());
  return {mean, median_of(std::move(known)), least};
}

std::string why_not(std::span<const Interference> ranks, bool in_turns) {
  Interference worst = worst_of(ranks);
  if (in_turns) worst.waited = 0;
  return in_words(worst, "a replica's");
}

TrainingSpeed measure_training(const train::RunSetup& setup, std::int64_t warm_up,
                               std::int64_t steps, DeviceNotes* notes) {
  constexpr std::int64_t kMostRounds = 10;
  const std::int64_t rounds = std::min(kMostRounds, steps);
  TrainingSpeed speed;
  speed.steps = steps;
  std::vector<train::PhaseSeconds> phases;
  Steps steps_done;
  train::RunListener* const listener = &steps_done;
  std::atomic<bool> stopped{false};
  const train::Execution& execution = setup.options.execution;
  std::vector<Interference> seen(execution.devices.size());  // by each rank
  std::vector<CoreLooks> cores(seen.size());
  comm::LocalGroup group = train::threads_of(execution);
  train::name_ranks(group, setup);
  train::run_ranks(group, execution, [&](Device& device, const train::Ranks& ranks) {
    const bool first = ranks.world.rank() == 0;
    if (first && notes != nullptr) device.compute().set_notes(&notes->lines);
    train::TrainLoop loop(setup, device, ranks,
                          first ? std::span(&listener, 1) : std::span<train::RunListener* const>());
    const double seconds = time_one_step(loop);
    if (first && notes != nullptr) notes->first_step_seconds = seconds;
    if (seconds < 0 || !run_steps(loop, warm_up - 1)) return stopped.store(true);
    loop.settle();
    const auto rank = static_cast<std::size_t>(ranks.world.rank());
    const auto look = [&] {  // a GPU's steps wait for no core
      if (device.id().kind == DeviceKind::cpu) cores[rank].take(core_pace());
    };
    const InterferenceWatch watch;
    for (std::int64_t i = 0; i < rounds; ++i) {
      look();
      if (first) phases.push_back(loop.phases());
      const std::int64_t count =
          begin_of_round(i + 1, rounds, steps) - begin_of_round(i, rounds, steps);
      if (!run_steps(loop, count)) return stopped.store(true);
    }
    loop.settle();
    seen[rank] = watch.seen();
    look();
    if (first) phases.push_back(loop.phases());
  });
  if (stopped) throw Stopped();
  speed.why_not = why_not(seen, std::ssize(seen) * execution.threads > usable_processors());
  for (const CoreLooks& core : cores) {
    speed.shared_core = std::max(speed.shared_core, core.share());
  }
  const std::span<const train::StepReport> measured =
      std::span(steps_done.reports).last(static_cast<std::size_t>(steps));
  speed.step = step_seconds(measured);
  speed.phases = divided(phases.back().since(phases.front()), static_cast<double>(steps));
  speed.rounds = rounds_of(measured, phases);
  std::int64_t samples = 0;
  for (const train::StepReport& step : measured) samples += step.samples;
  speed.samples_per_second =
      static_cast<double>(samples) / (speed.step.mean * static_cast<double>(steps));
  const auto batch = static_cast<double>(setup.partition.step_range(0).size());
  speed.nominal_flops = batch * flops_per_sample(setup.replica, false);
  speed.computed_flops = batch * flops_per_sample(setup.replica, setup.replica.fuse);
  return speed;
}

}  // namespace ringlet::bench
