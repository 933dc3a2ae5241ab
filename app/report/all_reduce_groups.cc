#include "app/report/all_reduce_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "app/report/svg_plot.h"

namespace ringlet::app::report {

namespace {

const bench::Measurement& row_of(const bench::Series& series) { return series.rows.front(); }

bool same_engine(const bench::Series& a, const bench::Series& b) {
  return row_of(a).engine == row_of(b).engine && row_of(a).ranks_as == row_of(b).ranks_as;
}

/// The logarithm of how much longer a strategy takes than the fastest, in the mean over the sizes.
/// A size that it lacks counts as a thousand times.
double lag_of(const bench::Series& series, const Group& group) {
  const double missing = std::log(1000);
  double sum = 0;
  for (const std::int64_t bytes : sizes_in(group)) {
    double fastest = std::numeric_limits<double>::infinity();
    for (const bench::Series* other : group) fastest = std::min(fastest, median_of(*other, bytes));
    sum += std::min(missing, std::log(median_of(series, bytes) / fastest));
  }
  return sum;
}

}  // namespace

std::vector<Group> groups_of(const bench::Comparison& comparison) {
  std::vector<Group> groups;
  for (const bench::Series& series : comparison.series) {
    auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return same_engine(*group.front(), series);
    });
    if (same == groups.end()) same = groups.insert(same, Group());
    same->push_back(&series);
  }
  return groups;
}

std::string name_of(const std::vector<Group>& groups, const Group& group) {
  const bench::Measurement& row = row_of(*group.front());
  const auto of_engine = std::count_if(groups.begin(), groups.end(), [&](const Group& other) {
    return row_of(*other.front()).engine == row.engine;
  });
  return of_engine > 1 ? row.engine + " " + row.ranks_as : row.engine;
}

std::string name_in(const Group& group, const bench::Series& series) {
  const bench::Measurement& row = row_of(series);
  const bool one = std::all_of(group.begin(), group.end(), [&](const bench::Series* other) {
    return row_of(*other).transport == row.transport;
  });
  return one ? row.strategy : fmt::format("{} ({})", row.strategy, row.transport);
}

std::vector<std::int64_t> sizes_in(const Group& group) {
  std::set<std::int64_t> sizes;
  for (const bench::Series* series : group) {
    for (const bench::Measurement& m : series->curve) sizes.insert(m.bytes);
  }
  return {sizes.begin(), sizes.end()};
}

double median_of(const bench::Series& series, std::int64_t bytes) {
  const bench::Measurement* const row = series.at(bytes);
  return row == nullptr ? std::numeric_limits<double>::infinity() : row->median_us;
}

Group fixed_strategies(const Group& group) {
  Group fixed = group;
  std::erase_if(fixed, [](const bench::Series* series) { return series->picks(); });
  return fixed.empty() ? group : fixed;
}

const bench::Series& best_strategy(const Group& group) {
  const Group fixed = fixed_strategies(group);
  return **std::min_element(fixed.begin(), fixed.end(),
                            [&](const bench::Series* a, const bench::Series* b) {
                              return lag_of(*a, fixed) < lag_of(*b, fixed);
                            });
}

const bench::Series* ring_of(const Group& group) {
  const std::string& transport = row_of(best_strategy(group)).transport;
  const bench::Series* ring = nullptr;
  for (const bench::Series* series : group) {
    if (row_of(*series).strategy != "ring") continue;
    if (ring == nullptr || row_of(*series).transport == transport) ring = series;
  }
  return ring;
}

int color_of(const Group& group, const bench::Series& series) {
  if (&series == &best_strategy(group)) return kBest;
  return &series == ring_of(group) ? kBaseline : kGrey;
}

}  // namespace ringlet::app::report
