#include "bench/training/scaling_turns.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

#include "base/core_pace.h"
#include "base/median.h"
#include "base/stop_request.h"
#include "base/stopwatch.h"
#include "bench/all_reduce/judgement.h"
#include "train/trainer.h"

namespace ringlet::bench {

namespace {

/// The rows that are due, in turns, round by round.
void measure_rows(std::vector<ScalingRow>& rows, const std::vector<std::size_t>& due,
                  const ScalingPlan& plan, const RoundOf& measure) {
  std::vector<std::vector<double>> steps(rows.size());  // of rank 0
  const int rounds = rounds_of(static_cast<int>(plan.steps));
  for (int round = 0; round < rounds; ++round) {
    for (const std::size_t i : due) {
      const std::vector<RankRound> ranks =
          measure(i, plan.warm_up, calls_of_round(static_cast<int>(plan.steps), rounds, round));
      ScalingRow& row = rows[i];
      row.rounds.push_back(round_of(ranks));
      row.seen.resize(ranks.size());
      row.cores.resize(ranks.size());
      for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        row.seen[rank] += ranks[rank].seen;
        row.cores[rank] += ranks[rank].core;
      }
      for (const RankSeconds& step : ranks.front().steps) steps[i].push_back(step.step);
    }
  }
  for (const std::size_t i : due) {
    if (!steps[i].empty()) {
      rows[i].quickest = *std::min_element(steps[i].begin(), steps[i].end());
      rows[i].middle = median_of(steps[i]);
    }
    judge(rows[i]);
  }
}

/// The same row without what was measured.
ScalingRow bare(const ScalingRow& row) {
  return {.replicas = row.replicas, .batch = row.batch, .shares = row.shares, .layout = row.layout};
}

bool is_better_row(const ScalingRow& a, const ScalingRow& b) {
  return a.counts() != b.counts() ? a.counts() : a.rate.value > b.rate.value;
}

/// What all rounds of each row take, by a short one of each, which is not kept.
std::vector<double> try_rows(const std::vector<ScalingRow>& rows, const ScalingPlan& plan,
                             const RoundOf& measure) {
  constexpr std::int64_t kTried = 2;  // steps
  const int rounds = rounds_of(static_cast<int>(plan.steps));
  std::vector<double> seconds;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Stopwatch watch;
    const RankRound seen = measure(i, plan.warm_up, kTried).front();
    const double step = seen.seconds / kTried;
    const double around = std::max(0.0, watch.seconds() - seen.seconds);  // begin and warm-up
    seconds.push_back(rounds * around + static_cast<double>(plan.steps) * step);
  }
  return seconds;
}

/// Rows to measure again that the budget has room for, each of them taken off it.
std::vector<std::size_t> due_again(const std::vector<ScalingRow>& rows,
                                   const std::vector<double>& seconds, double& budget) {
  std::vector<std::size_t> due;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].counts() || seconds[i] > budget) continue;
    budget -= seconds[i];
    due.push_back(i);
  }
  return due;
}

/// Steps of this rank; fewer where somebody asked to stop. `sees_parts`: each by itself.
RankRound rounds_half(train::TrainLoop& loop, std::int64_t count, bool sees_parts) {
  RankRound round;
  if (sees_parts) round.core.take(core_pace());
  const InterferenceWatch watch;
  const Stopwatch all;
  for (std::int64_t i = 0; i < count; ++i) {
    const train::PhaseSeconds before = loop.phases();
    const Stopwatch one;
    if (!loop.step()) throw Stopped();
    if (!sees_parts) continue;
    const double seconds = one.seconds();
    const train::PhaseSeconds phases = loop.phases().since(before);
    round.steps.push_back(
        {seconds, phases.forward + phases.backward, phases.sync, phases.update, phases.data});
  }
  loop.settle();
  round.seconds = all.seconds();
  round.seen = watch.seen();
  if (sees_parts) round.core.take(core_pace());
  return round;
}

}  // namespace

void measure_scaling(std::vector<ScalingRow>& rows, const ScalingPlan& plan, const RoundOf& round) {
  const std::vector<double> seconds = try_rows(rows, plan, round);
  double all = 0;
  std::vector<std::size_t> due;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    all += seconds[i];
    due.push_back(i);
  }
  if (plan.begins) plan.begins(all);
  measure_rows(rows, due, plan, round);
  double budget = plan.budget_seconds;
  while (!(due = due_again(rows, seconds, budget)).empty()) {
    std::vector<ScalingRow> again;
    std::transform(rows.begin(), rows.end(), std::back_inserter(again), bare);
    measure_rows(again, due, plan, round);
    for (const std::size_t i : due) {
      if (is_better_row(again[i], rows[i])) rows[i] = std::move(again[i]);
    }
  }
  compare_with_first(rows);
}

std::vector<RankRound> measure_round(comm::Group& group, const train::RunSetup& setup,
                                     std::int64_t warm_up, std::int64_t steps) {
  const train::Execution& execution = setup.options.execution;
  const bool sees_parts = execution.devices.front().kind == DeviceKind::cpu;
  std::vector<RankRound> ranks(execution.devices.size());
  std::atomic<bool> stopped{false};
  train::name_ranks(group, setup);
  train::run_replicas(group, execution, [&](Device& device, comm::Communicator& communicator) {
    train::TrainLoop loop(setup, device, communicator, {});
    const auto place = static_cast<std::size_t>(communicator.rank() - group.first_rank());
    try {
      (void)rounds_half(loop, warm_up, false);
      ranks[place] = rounds_half(loop, steps, sees_parts);
    } catch (const Stopped&) {
      stopped = true;  // on all ranks, after the same step
    }
  });
  if (stopped) throw Stopped();
  for (std::int64_t step = warm_up; step < warm_up + steps; ++step) {
    for (RankRound& rank : ranks) rank.samples += setup.partition.step_range(step).size();
  }
  return ranks;
}

}  // namespace ringlet::bench
