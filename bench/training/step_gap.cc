#include "bench/training/step_gap.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iterator>

#include "base/median.h"
#include "base/stop_request.h"
#include "base/stopwatch.h"
#include "train/trainer.h"

namespace ringlet::bench {

namespace {

constexpr int kWarmUp = 3, kLeastRounds = 3;
// Short beside what disturbs for seconds, and long beside what it takes to set a run up.
constexpr double kRoundSeconds = 0.05;

std::vector<RankStep> steps_of(train::TrainLoop& loop, std::int64_t count) {
  std::vector<RankStep> steps;
  steps.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const train::PhaseSeconds before = loop.phases();
    const Stopwatch watch;
    if (!loop.step()) break;
    const double seconds = watch.seconds();
    const train::PhaseSeconds phases = loop.phases().since(before);
    steps.push_back({seconds, phases.forward + phases.backward, phases.sync});
  }
  return steps;
}

std::vector<StepParts> run_round(const train::RunSetup& setup, std::int64_t steps) {
  std::vector<std::vector<RankStep>> ranks(static_cast<std::size_t>(setup.replicas));
  std::atomic<bool> stopped{false};
  comm::LocalGroup group = train::threads_of(setup.options.execution);
  train::run_replicas(
      group, setup.options.execution, [&](Device& device, comm::Communicator& communicator) {
        train::TrainLoop loop(setup, device, communicator, {});
        std::vector<RankStep>& mine = ranks[static_cast<std::size_t>(communicator.rank())];
        if (std::ssize(steps_of(loop, kWarmUp)) < kWarmUp) stopped = true;
        if (!stopped) mine = steps_of(loop, steps);
        if (std::ssize(mine) < steps) stopped = true;
      });
  if (stopped) throw Stopped();
  return parts_of(ranks);
}

/// One kind of run, and its steps so far.
struct Kind {
  train::RunSetup setup;
  std::vector<StepParts> steps{};

  void measure_round() {
    // By the quickest so far, as a first step beside another program says little of the next.
    const std::int64_t count =
        steps.empty()
            ? 2
            : std::clamp<std::int64_t>(std::llround(kRoundSeconds / quickest().step()), 2, 50);
    std::ranges::copy(run_round(setup, count), std::back_inserter(steps));
  }
  const StepParts& quickest() const {
    return *std::min_element(steps.begin(), steps.end(), shorter);
  }
  double unrest() const {
    std::vector<double> seconds;
    for (const StepParts& one : steps) seconds.push_back(one.step());
    return median_of(std::move(seconds)) / quickest().step();
  }
  static bool shorter(const StepParts& a, const StepParts& b) { return a.step() < b.step(); }
};

}  // namespace

std::vector<StepParts> parts_of(std::span<const std::vector<RankStep>> ranks) {
  std::vector<StepParts> parts(ranks.front().size());
  const auto share = 1 / static_cast<double>(ranks.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    double least = ranks.front()[i].sync;
    for (const std::vector<RankStep>& rank : ranks) least = std::min(least, rank[i].sync);
    for (const std::vector<RankStep>& rank : ranks) {
      const RankStep& step = rank[i];
      parts[i].compute += share * step.compute;
      parts[i].waiting += share * (step.sync - least);
      parts[i].sums += share * least;
      parts[i].rest += share * (step.step - step.compute - step.sync);
    }
  }
  return parts;
}

StepGap gap_between(const StepParts& alone, const StepParts& share, const StepParts& together,
                    int ranks) {
  StepGap gap;
  gap.ranks = ranks;
  gap.ideal = alone.step() / ranks;
  gap.smaller_share = share.compute - alone.compute / ranks;
  gap.disturbed = together.compute - share.compute;
  gap.waiting = together.waiting;
  gap.sums = together.sums;
  // One replica alone sums nothing, and waits for nobody.
  gap.does_not_shrink = together.rest - (alone.step() - alone.compute) / ranks;
  gap.step = together.step();
  return gap;
}

StepGap measure_step_gap(const SetupOf& setup, int ranks, std::int64_t batch_size, double seconds) {
  const Stopwatch watch;
  Kind kinds[] = {{setup(1, batch_size)},
                  {setup(1, (batch_size + ranks - 1) / ranks)},
                  {setup(ranks, batch_size)}};
  for (int rounds = 0; rounds <= kLeastRounds || watch.seconds() < seconds; ++rounds) {
    for (Kind& kind : kinds) kind.measure_round();
  }
  StepGap gap = gap_between(kinds[0].quickest(), kinds[1].quickest(), kinds[2].quickest(), ranks);
  gap.steps = std::ssize(kinds[0].steps);
  for (const Kind& kind : kinds) {
    gap.unrest = std::max(gap.unrest, kind.unrest());
    gap.steps = std::min<std::int64_t>(gap.steps, std::ssize(kind.steps));
  }
  return gap;
}

}  // namespace ringlet::bench
