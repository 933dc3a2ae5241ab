#include "bench/training/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/median.h"
#include "base/philox.h"
#include "bench/all_reduce/judgement.h"
#include "bench/training/training_bench.h"

namespace ringlet::bench {

namespace {

/// Of one step of all ranks: adds its parts, what each computed, and who came last.
void add_step(ScalingRound& round, std::span<const RankRound> ranks, std::size_t step) {
  const auto least =
      std::min_element(ranks.begin(), ranks.end(), [&](const RankRound& a, const RankRound& b) {
        return a.steps[step].sync < b.steps[step].sync;
      });
  const double sums = least->steps[step].sync;
  const auto share = 1 / static_cast<double>(ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankSeconds& one = ranks[rank].steps[step];
    round.compute[rank] += one.compute;
    round.parts.compute += share * one.compute;
    round.parts.sums += share * sums;
    round.parts.waiting += share * (one.sync - sums);
    round.parts.update += share * one.update;
    round.parts.data += share * one.data;
    round.parts.between += share * (one.step - one.compute - one.sync - one.update - one.data);
  }
  if (!round.last.empty()) round.last[static_cast<std::size_t>(least - ranks.begin())] += 1;
}

/// The mean of the rounds in the middle half by time: its parts add up to a step, as medians of
/// parts do not.
ScalingParts middle_parts(const std::vector<ScalingRound>& rounds) {
  std::vector<const ScalingRound*> sorted;
  for (const ScalingRound& round : rounds) sorted.push_back(&round);
  std::sort(sorted.begin(), sorted.end(),
            [](const ScalingRound* a, const ScalingRound* b) { return a->step < b->step; });
  const std::size_t left_out = sorted.size() / 4;
  const std::span middle = std::span(sorted).subspan(left_out, sorted.size() - 2 * left_out);
  ScalingParts parts;
  for (const ScalingPart& part : kScalingParts) {
    for (const ScalingRound* round : middle) {
      parts.*part.seconds += round->parts.*part.seconds / static_cast<double>(middle.size());
    }
  }
  return parts;
}

/// Of what each rank has in each round, the sums over the rounds.
std::vector<double> by_rank(const ScalingRow& row, std::vector<double> ScalingRound::*list) {
  std::vector<double> sums;
  for (const ScalingRound& round : row.rounds) {
    sums.resize(std::max(sums.size(), (round.*list).size()));
    for (std::size_t rank = 0; rank < (round.*list).size(); ++rank) {
      sums[rank] += (round.*list)[rank];
    }
  }
  return sums;
}

std::string reasons_of(const ScalingRow& row) {
  if (!row.rate.has_interval()) return "";
  std::vector<std::string> reasons;
  if (row.rate.high > (row.shares ? kMostSpreadInTurns : kMostSpread) * row.rate.low) {
    reasons.push_back(too_wide(row.rate.low, row.rate.high, "samples/s"));
  }
  if (!row.shares && row.middle > kMostOverMin * row.quickest) {
    reasons.push_back(fmt::format("half of its steps took {:.3g} times the quickest or longer",
                                  row.middle / row.quickest));
  }
  const std::string seen = row.seen.empty() ? "" : why_not(row.seen, row.shares);
  if (!seen.empty()) reasons.push_back(seen);
  return fmt::format("{}", fmt::join(reasons, ", "));
}

}  // namespace

ScalingRound round_of(std::span<const RankRound> ranks) {
  const RankRound& first = ranks.front();
  double seconds = 0;
  for (const RankRound& rank : ranks) seconds = std::max(seconds, rank.seconds);
  ScalingRound round{.rate = static_cast<double>(first.samples) / seconds};
  const std::size_t steps = first.steps.size();
  if (steps == 0) return round;
  round.compute.resize(ranks.size());
  if (ranks.size() > 1) round.last.resize(ranks.size());
  for (std::size_t step = 0; step < steps; ++step) add_step(round, ranks, step);
  const auto count = static_cast<double>(steps);
  for (const ScalingPart& part : kScalingParts) round.parts.*part.seconds /= count;
  for (double& compute : round.compute) compute /= count;
  return round;
}

int ScalingRow::often_last() const {
  const auto most = std::max_element(last.begin(), last.end());
  return most == last.end() ? -1 : static_cast<int>(most - last.begin());
}

double ScalingRow::shared_core() const {
  double most = -1;
  for (const CoreLooks& core : cores) most = std::max(most, core.share());
  return most;
}

void judge(ScalingRow& row) {
  std::vector<double> rates;
  for (ScalingRound& round : row.rounds) {
    round.step = static_cast<double>(row.batch) / round.rate;
    rates.push_back(round.rate);
  }
  const auto [low, high] = interval_of_median(rates);
  row.rate = {median_of(std::move(rates)), low, high};
  row.parts = middle_parts(row.rounds);
  row.last = by_rank(row, &ScalingRound::last);
  const double all = std::accumulate(row.last.begin(), row.last.end(), 0.0);
  for (double& share : row.last) share /= all;
  const std::vector<double> compute = by_rank(row, &ScalingRound::compute);
  if (!compute.empty()) {
    const auto [least, most] = std::minmax_element(compute.begin(), compute.end());
    row.spread = *least > 0 ? *most / *least - 1 : 0;
  }
  row.why_not = reasons_of(row);
}

void compare_with_first(std::vector<ScalingRow>& rows) {
  const ScalingRow& first = rows.front();
  for (ScalingRow& row : rows) {
    row.speedup = row.efficiency = {};
    if (!first.counts() || !row.counts()) continue;
    const double samples = static_cast<double>(row.batch) / static_cast<double>(first.batch);
    const ScalingRow* const both[] = {&first, &row};
    row.speedup =
        &row == &first ? Estimate{1, 1, 1} : resampled(both, [&](std::span<const double> steps) {
          return samples * steps[0] / steps[1];
        });
    const double ideal = static_cast<double>(row.replicas) / first.replicas;
    row.efficiency = {row.speedup.value / ideal, row.speedup.low / ideal, row.speedup.high / ideal};
  }
}

std::string not_counting(const std::vector<ScalingRow>& rows) {
  const auto count =
      std::count_if(rows.begin(), rows.end(), [](const ScalingRow& row) { return !row.counts(); });
  if (count == 0) return "";
  return fmt::format("the machine was busy: {} of {} rows {} not count", count, rows.size(),
                     count == 1 ? "does" : "do");
}

Estimate resampled(std::span<const ScalingRow* const> rows, const FigureOfSteps& figure) {
  constexpr int kSamples = 1000;
  constexpr std::size_t kBeyond = 25;  // of these on either side: 2.5 %
  std::vector<double> medians(rows.size());
  std::vector<std::vector<double>> steps(rows.size());
  bool judged = true;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const ScalingRound& round : rows[i]->rounds) steps[i].push_back(round.step);
    medians[i] = median_of(steps[i]);
    judged = judged && std::ssize(steps[i]) >= kFewestJudged;
  }
  Estimate estimate{figure(medians)};
  if (!judged) return estimate;
  std::vector<double> figures, drawn;
  for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      drawn.clear();
      for (std::size_t k = 0; k < steps[i].size(); ++k) {
        const std::uint32_t word = philox(sample, i, k)[0];
        drawn.push_back(steps[i][word % steps[i].size()]);
      }
      medians[i] = median_of(drawn);
    }
    figures.push_back(figure(medians));
  }
  std::sort(figures.begin(), figures.end());
  estimate.low = std::min(figures[kBeyond], estimate.value);
  estimate.high = std::max(figures[kSamples - 1 - kBeyond], estimate.value);
  return estimate;
}

}  // namespace ringlet::bench
