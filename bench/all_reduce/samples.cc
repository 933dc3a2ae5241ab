#include "bench/all_reduce/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/median.h"
#include "bench/all_reduce/collective.h"

namespace ringlet::bench {

void set_ranks(Measurement& measurement, const std::vector<std::vector<double>>& seconds) {
  measurement.by_rank.clear();
  const std::size_t calls = seconds.front().size();
  std::vector<std::int64_t> last(seconds.size(), 0);
  for (std::size_t call = 0; call < calls; ++call) {
    const auto slower = [call](const auto& a, const auto& b) { return a[call] < b[call]; };
    ++last[static_cast<std::size_t>(std::max_element(seconds.begin(), seconds.end(), slower) -
                                    seconds.begin())];
  }
  for (std::size_t rank = 0; rank < seconds.size(); ++rank) {
    const double sum = std::accumulate(seconds[rank].begin(), seconds[rank].end(), 0.0);
    measurement.by_rank.push_back(
        {.median_us = 1e6 * median_of(seconds[rank]),
         .mean_us = 1e6 * sum / static_cast<double>(calls),
         .last = static_cast<double>(last[rank]) / static_cast<double>(calls)});
  }
}

namespace {

/// The median of the other ranks' medians.
double others_us(const Measurement& row, std::size_t rank) {
  std::vector<double> others;
  for (std::size_t other = 0; other < row.by_rank.size(); ++other) {
    if (other != rank) others.push_back(row.by_rank[other].median_us);
  }
  return median_of(others);
}

/// In which rows a rank was late, and how.
struct Lateness {
  std::vector<double> last, times;
};

}  // namespace

std::string late_text(const std::vector<Measurement>& measurements) {
  std::size_t rows = 0, ranks = 0;
  std::map<std::size_t, Lateness> late;
  for (const Measurement& row : measurements) {
    const bool is_whole = row.level == Measurement().level && row.root == kNoRoot;
    if (!is_whole || !row.counts || !row.has_interval() || row.by_rank.size() < 2) continue;
    ++rows;
    ranks = row.by_rank.size();
    const auto slowest = std::max_element(row.by_rank.begin(), row.by_rank.end(),
                                          [](auto& a, auto& b) { return a.last < b.last; });
    const auto rank = static_cast<std::size_t>(slowest - row.by_rank.begin());
    const double times = slowest->median_us / others_us(row, rank);
    if (slowest->last < kMostCalls || times < kLate) continue;
    late[rank].last.push_back(slowest->last);
    late[rank].times.push_back(times);
  }
  constexpr std::size_t kFewest = 3;
  for (const auto& [rank, lateness] : late) {
    const std::size_t count = lateness.last.size();
    if (count < kFewest || 4 * count < 3 * rows) continue;
    return fmt::format(
        "rank {} is late: the last of {} in {:.0f} % of the calls, {:.2f} times the others' time "
        "(median of {} of {} rows)",
        rank, ranks, 100 * median_of(lateness.last), median_of(lateness.times), count, rows);
  }
  return "";
}

std::string raw_lines(const std::vector<Measurement>& measurements) {
  std::string text;
  for (const Measurement& m : measurements) {
    if (!m.samples) continue;
    const std::string row =
        fmt::format("{},{},{},{},{},{},{},{},{}", m.collective, m.ranks, m.machines, m.level,
                    m.type, m.op, m.in_place, m.bytes, m.strategy);
    for (std::size_t rank = 0; rank < m.samples->seconds.size(); ++rank) {
      auto seconds = m.samples->seconds[rank].begin();
      for (std::size_t round = 0; round < m.samples->calls_of_rounds.size(); ++round) {
        for (int call = 0; call < m.samples->calls_of_rounds[round]; ++call) {
          text += fmt::format("{},{},{},{},{:.3f}\n", row, m.samples->ranks[rank], round, call,
                              1e6 * *seconds++);
        }
      }
    }
  }
  return text;
}

}  // namespace ringlet::bench
