#include "bench/training/step_gap.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/stop_request.h"
#include "base/stopwatch.h"
#include "train/trainer.h"

namespace ringlet::bench {

namespace {

constexpr int kWarmUp = 3, kLeastRounds = 3;
// As long as a round may take that nobody is to disturb: a scheduler's time slice or two.
constexpr double kRoundSeconds = 0.02;

/// One kind of run, and its rounds so far.
struct Kind {
  train::RunSetup setup;
  std::int64_t steps = 1;  // of a round
  std::vector<RoundSeconds> rounds{};

  const RoundSeconds& quickest() const {
    return *std::min_element(rounds.begin(), rounds.end(), shorter);
  }
  double unrest() const {
    std::vector<RoundSeconds> sorted = rounds;
    std::sort(sorted.begin(), sorted.end(), shorter);
    return sorted[sorted.size() / 2].step() / sorted.front().step();
  }
  static bool shorter(const RoundSeconds& a, const RoundSeconds& b) { return a.step() < b.step(); }
};

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

RoundSeconds run_round(const train::RunSetup& setup, std::int64_t steps) {
  std::vector<std::vector<RankStep>> ranks(static_cast<std::size_t>(setup.ranks));
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
  return round_of(ranks);
}

}  // namespace

RoundSeconds round_of(std::span<const std::vector<RankStep>> ranks) {
  RoundSeconds sum;
  const std::size_t steps = ranks.front().size();
  for (std::size_t i = 0; i < steps; ++i) {
    double least = ranks.front()[i].sync;
    for (const std::vector<RankStep>& rank : ranks) least = std::min(least, rank[i].sync);
    for (const std::vector<RankStep>& rank : ranks) {
      const RankStep& step = rank[i];
      sum.compute += step.compute;
      sum.waiting += step.sync - least;
      sum.sums += least;
      sum.rest += step.step - step.compute - step.sync;
    }
  }
  const auto all = static_cast<double>(steps * ranks.size());
  return {sum.compute / all, sum.waiting / all, sum.sums / all, sum.rest / all};
}

StepGap gap_between(const RoundSeconds& alone, const RoundSeconds& share,
                    const RoundSeconds& together, int ranks) {
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
  for (Kind& kind : kinds) {
    const double step = run_round(kind.setup, 2).step();
    kind.steps = std::clamp<std::int64_t>(std::llround(kRoundSeconds / step), 2, 50);
  }
  int rounds = 0;
  for (; rounds < kLeastRounds || watch.seconds() < seconds; ++rounds) {
    for (Kind& kind : kinds) kind.rounds.push_back(run_round(kind.setup, kind.steps));
  }
  StepGap gap = gap_between(kinds[0].quickest(), kinds[1].quickest(), kinds[2].quickest(), ranks);
  for (const Kind& kind : kinds) gap.unrest = std::max(gap.unrest, kind.unrest());
  gap.rounds = rounds;
  return gap;
}

}  // namespace ringlet::bench
