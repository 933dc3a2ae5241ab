#include "bench/simulation/ways.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "bench/simulation/simulation.h"
#include "comm/schedule/recording.h"

namespace ringlet::bench {

namespace {

comm::PathCost of_a_byte(comm::PathCost path, double bytes) {
  path.bytes /= bytes;
  path.reduced_bytes /= bytes;
  return path;
}

bool is_same(const comm::PathCost& a, const comm::PathCost& b) {
  return std::tie(a.steps, a.bytes, a.reduced_bytes) == std::tie(b.steps, b.bytes, b.reduced_bytes);
}

}  // namespace

std::vector<Way> ways_of(const comm::Strategy& strategy, const Layout& layout) {
  if (!why_not_recorded(strategy, network_of(layout, {})).empty()) return {};
  if (layout.machines == 1) return {{.inside = strategy.path_cost(layout.each, 1)}};
  std::vector<Way> ways;
  const double bytes = std::ldexp(layout.each, 20);
  const auto note = [&](const comm::CostModel& link) {
    const auto costs = strategy.costs_of_levels(layout.machines, layout.each, bytes, link);
    const Way way{of_a_byte(costs.between, bytes), of_a_byte(costs.inside, bytes)};
    const bool known = std::any_of(ways.begin(), ways.end(), [&](const Way& other) {
      return is_same(way.between, other.between) && is_same(way.inside, other.inside);
    });
    if (!known) ways.push_back(way);
  };
  // From links on which latency is all to those on which it is nothing, and adding free or dear.
  for (double byte = 1e-9; byte < 1e3; byte *= 4) {
    note({1, byte, 0});
    note({1, byte, 4 * byte});
  }
  return ways;
}

bool is_like(const Layout& layout, const Layout& other) {
  return other.machines == 1 ? layout.machines == 1 : layout.each == other.each;
}

std::vector<Layout> layouts_like(const Layout& layout, const std::vector<Layout>& also) {
  constexpr int kEach = 32, kOfADoubling = 8;
  const bool several = layout.machines > 1;
  const int most = several ? kMostRanks / layout.each : kMostRanks;
  std::set<int> counts{most};
  for (int count = 1; count <= std::min(kEach, most); ++count) counts.insert(count);
  for (int power = 0; std::exp2(power / kOfADoubling) <= most; ++power) {
    const double count = std::exp2(static_cast<double>(power) / kOfADoubling);
    if (count > kEach && count <= most) counts.insert(static_cast<int>(std::lround(count)));
  }
  for (const Layout& other : also) {
    if (is_like(other, layout)) counts.insert(several ? other.machines : other.each);
  }
  std::vector<Layout> layouts;
  for (const int count : counts) {
    const Layout next = several ? Layout{count, layout.each} : Layout{1, count};
    if (next.ranks() > 1) layouts.push_back(next);
  }
  return layouts;
}

}  // namespace ringlet::bench
