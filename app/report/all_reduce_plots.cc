#include "app/report/all_reduce_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "app/report/svg_plot.h"

namespace ringlet::app::report {

namespace {

/// The figure of a row that a plot shows.
using Quantity = double (*)(const bench::Measurement&);

double time_us(const bench::Measurement& m) { return m.median_us; }
double busbw(const bench::Measurement& m) { return m.busbw_gbs(); }

AxisSpec sizes_axis() {
  return {.title = "bytes on each rank", .log = true, .binary = true, .label = bench::rough_size};
}

Curve curve_of(const bench::Series& series, Quantity quantity) {
  Curve curve;
  for (const bench::Measurement& m : series.curve)
    curve.add(static_cast<double>(m.bytes), quantity(m));
  return curve;
}

/// Whether both are from one engine, run in the same way.
bool same_engine(const bench::Series& a, const bench::Series& b) {
  const bench::Measurement &x = a.rows.front(), &y = b.rows.front();
  return x.engine == y.engine && x.ranks_as == y.ranks_as;
}

/// Series of one engine.
using Group = std::vector<const bench::Series*>;

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

/// The best of a group's strategies at each size.
Curve best_of(const Group& group, Quantity quantity, bool least) {
  std::map<std::int64_t, double> best;
  for (const bench::Series* series : group) {
    if (series->picks()) continue;
    for (const bench::Measurement& m : series->curve) {
      const double value = quantity(m);
      const auto [at, added] = best.try_emplace(m.bytes, value);
      if (!added) at->second = least ? std::min(at->second, value) : std::max(at->second, value);
    }
  }
  Curve curve;
  for (const auto& [bytes, value] : best) curve.add(static_cast<double>(bytes), value);
  return curve;
}

/// "openmpi", or "ringlet as processes" where there are threads of it, too.
std::string name_of(const std::vector<Group>& groups, const Group& group) {
  const bench::Measurement& row = group.front()->rows.front();
  const auto of_engine = std::count_if(groups.begin(), groups.end(), [&](const Group& other) {
    return other.front()->rows.front().engine == row.engine;
  });
  return of_engine > 1 ? row.engine + " as " + row.ranks_as : row.engine;
}

/// "ring", or "ring (tcp)" where the group has several transports.
std::string name_in(const Group& group, const bench::Series& series) {
  const bench::Measurement& row = series.rows.front();
  const bool one = std::all_of(group.begin(), group.end(), [&](const bench::Series* other) {
    return other->rows.front().transport == row.transport;
  });
  return one ? row.strategy : fmt::format("{} ({})", row.strategy, row.transport);
}

void add_lines(Plot& plot, const Group& group, Quantity quantity) {
  for (const bench::Series* series : group) {
    const auto color = static_cast<int>(plot.series.size());
    plot.series.push_back({name_in(group, *series), curve_of(*series, quantity), color % kColors,
                           color < kColors ? Look::dotted_line : Look::dashed});
  }
}

struct PlotKind {
  const char* id;
  const char* title;
  const char* unit;
  Quantity quantity;
  bool least;  // the best is the least
};

constexpr PlotKind kTime{"time", "Time", "µs", time_us, true};
constexpr PlotKind kBusbw{"busbw", "Bus bandwidth", "GB/s", busbw, false};

Plot empty_plot(const PlotKind& kind, const std::string& id, const std::string& note) {
  return {.id = id,
          .title = kind.title,
          .note = note,
          .x = sizes_axis(),
          .y = {.title = kind.unit, .log = true},
          .series = {}};
}

std::string main_plot(const bench::Comparison& comparison, const std::vector<Group>& groups,
                      int number, const PlotKind& kind) {
  Plot plot = empty_plot(kind, fmt::format("{}-{}", kind.id, number),
                         fmt::format("median, {} ranks", comparison.ranks));
  add_lines(plot, groups.front(), kind.quantity);
  for (std::size_t i = 1; i < groups.size(); ++i) {
    plot.series.push_back({"best of " + name_of(groups, groups[i]),
                           best_of(groups[i], kind.quantity, kind.least),
                           kColors - static_cast<int>(i), Look::dashed});
  }
  return figure_of(plot);
}

std::string engine_plot(const std::vector<Group>& groups, int number, std::size_t index,
                        const PlotKind& kind) {
  Plot plot = empty_plot(kind, fmt::format("{}-{}-{}", kind.id, number, index + 1),
                         name_of(groups, groups[index]));
  add_lines(plot, groups[index], kind.quantity);
  return figure_of(plot);
}

Curve model_curve(const bench::Series& series) {
  constexpr int kPoints = 80;
  const auto low = static_cast<double>(series.rows.front().bytes);
  const auto high = static_cast<double>(series.rows.back().bytes);
  Curve curve;
  for (int i = 0; i < kPoints; ++i) {
    const double bytes = low * std::pow(high / low, static_cast<double>(i) / (kPoints - 1));
    curve.add(bytes, 1e6 * series.predicted_seconds(bytes));
  }
  return curve;
}

std::string model_plot(const bench::Series& series, int number, int color) {
  const std::string& strategy = series.rows.front().strategy;
  return figure_of(
      {.id = fmt::format("model-{}-{}", number, strategy),
       .title = strategy,
       .note = fmt::format("off by {:.0f} %, at worst {:.0f} %", 100 * series.fit->median_error,
                           100 * series.fit->worst_error),
       .x = sizes_axis(),
       .y = {.title = "µs", .log = true},
       .series = {{"model", model_curve(series), color % kColors, Look::dashed},
                  {"measured", curve_of(series, time_us), color % kColors, Look::points}}});
}

}  // namespace

std::string plots_of(const bench::Comparison& comparison, int number) {
  const std::vector<Group> groups = groups_of(comparison);
  std::string html = "<div class=\"grid\">\n";
  for (const PlotKind& kind : {kTime, kBusbw}) html += main_plot(comparison, groups, number, kind);
  for (std::size_t i = 1; i < groups.size(); ++i) {
    for (const PlotKind& kind : {kTime, kBusbw}) {
      html += engine_plot(groups, number, i, kind);
    }
  }
  return html + "</div>\n";
}

std::string model_plots_of(const bench::Comparison& comparison, int number) {
  const std::vector<Group> groups = groups_of(comparison);
  std::string html;
  int color = 0;
  for (const bench::Series* series : groups.front()) {
    if (series->fit) html += model_plot(*series, number, color);
    ++color;
  }
  return html.empty() ? "" : "<div class=\"grid multiples\">\n" + html + "</div>\n";
}

}  // namespace ringlet::app::report
