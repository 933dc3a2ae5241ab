#include "bench/all_reduce/judgement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/median.h"

namespace ringlet::bench {

namespace {

constexpr double kCertainty = 0.95;

/// The probability that a binomial (n, 1/2) is below k.
double below(int n, int k) {
  double term = std::pow(0.5, n), sum = 0;
  for (int i = 0; i < k; ++i) {
    sum += term;
    term *= static_cast<double>(n - i) / (i + 1);
  }
  return sum;
}

/// What says that others were at work, whether or not it did harm. `row`: its p99 is such a sign.
std::vector<std::string> causes_of(const Measurement& row, const RowSigns& signs) {
  std::vector<std::string> causes;
  const std::string text = signs.ranks.empty() ? "" : in_words(worst_of(signs.ranks), "a rank's");
  if (!text.empty()) causes.push_back(text);
  if (row.pinned && signs.moves > 0) {
    causes.push_back(fmt::format("pinned ranks moved {}",
                                 signs.moves == 1 ? "once" : fmt::format("{} times", signs.moves)));
  }
  if (signs.clock >= kMuchClock) {
    causes.push_back(
        fmt::format("a processor's clock changed by {:.0f} %", 100 * (signs.clock - 1)));
  }
  for (const double share : signs.shared_cores) {
    if (share < kLeastShared || share > kMostShared) continue;
    causes.push_back(fmt::format("a rank's core was shared for {:.0f} % of the time", 100 * share));
    break;
  }
  if (row.p99_us >= kMostP99OverMin * row.min_us) {
    causes.push_back(fmt::format("p99 is {:.0f} times the quickest call", row.p99_us / row.min_us));
  }
  return causes;
}

/// With four digits or more, and never as 1.2e+04.
std::string figure(double value) {
  constexpr double kWhole = 1000;
  return value < kWhole ? fmt::format("{:.4g}", value) : fmt::format("{:.0f}", value);
}

/// Whether some rank was taken off its processor so often and so long that many calls felt it.
bool were_many_calls_hit(const Measurement& row, const RowSigns& signs) {
  constexpr double kOften = 0.25;  // of the calls
  return std::any_of(signs.ranks.begin(), signs.ranks.end(), [&](const Interference& rank) {
    const auto switches = static_cast<double>(rank.switches);
    const bool long_enough = rank.knows_waits() ? rank.waited_share() >= kMuchWaited
                                                : switches >= kManySwitches * rank.seconds;
    return long_enough && switches >= kOften * static_cast<double>(row.iterations);
  });
}

}  // namespace

int rounds_of(int iterations) {
  return iterations < kFewestJudged ? 1 : std::clamp(iterations / 2, kFewestJudged, kRounds);
}

int calls_of_round(int iterations, int rounds, int round) {
  return iterations / rounds + (round < iterations % rounds ? 1 : 0);
}

std::pair<double, double> interval_of_median(std::vector<double> medians) {
  const auto n = static_cast<int>(medians.size());
  if (n < kFewestJudged) return {0, 0};
  int k = 1;
  while (1 - 2 * below(n, k + 1) >= kCertainty) ++k;
  std::sort(medians.begin(), medians.end());
  return {medians[static_cast<std::size_t>(k - 1)], medians[static_cast<std::size_t>(n - k)]};
}

std::string too_wide(double low, double high, const char* unit) {
  return fmt::format("its rounds place the median only between {} and {} {}", figure(low),
                     figure(high), unit);
}

std::string why_not(const Measurement& row, const RowSigns& signs) {
  if (!row.has_interval()) return "";
  std::vector<std::string> reasons;
  const double spread = row.high_us / row.low_us, over_min = row.median_us / row.min_us;
  if (spread > (signs.in_turns ? kMostSpreadInTurns : kMostSpread)) {
    reasons.push_back(too_wide(row.low_us, row.high_us, "us"));
  }
  if (signs.in_turns) return reasons.empty() ? "" : reasons.front();
  if (over_min > kMostOverMin) {
    reasons.push_back(
        fmt::format("half of its calls took {} times the quickest or longer", figure(over_min)));
  }
  const std::vector<std::string> causes = causes_of(row, signs);
  const bool shaken = spread > kShaken || over_min > 2;
  const bool hit = were_many_calls_hit(row, signs);
  if (reasons.empty() && !hit && !(shaken && !causes.empty())) return "";
  if (hit && causes.empty())
    reasons.push_back("a rank was taken off its processor in many of its calls");
  reasons.insert(reasons.end(), causes.begin(), causes.end());
  return fmt::format("{}", fmt::join(reasons, ", "));
}

void judge(Measurement& row, std::span<const std::vector<double>> rounds, const RowSigns& signs) {
  std::vector<double> all, medians;
  for (const std::vector<double>& round : rounds) {
    all.insert(all.end(), round.begin(), round.end());
    medians.push_back(1e6 * median_of(round));
  }
  set_times(row, std::move(all));
  row.rounds = static_cast<int>(rounds.size());
  std::tie(row.low_us, row.high_us) = interval_of_median(std::move(medians));
  if (row.has_interval()) {  // the median of all calls is not that of the rounds' medians
    row.low_us = std::min(row.low_us, row.median_us);
    row.high_us = std::max(row.high_us, row.median_us);
  }
  for (const double share : signs.shared_cores) row.shared_core = std::max(row.shared_core, share);
  row.why_not = why_not(row, signs);
  row.counts = row.why_not.empty();
}

bool is_to_keep(const Measurement& a, const Measurement& b) {
  if (a.right() != b.right()) return !a.right();
  return a.counts != b.counts ? a.counts : a.median_us < b.median_us;
}

}  // namespace ringlet::bench
