#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "app/report/all_reduce_groups.h"
#include "app/report/all_reduce_page.h"
#include "app/report/svg_plot.h"
#include "bench/all_reduce/collective.h"

namespace ringlet::app::report {

namespace {

/// The figure of a row that a plot shows.
using Quantity = double (*)(const bench::Measurement&);

double time_us(const bench::Measurement& m) { return m.median_us; }
double busbw(const bench::Measurement& m) { return m.busbw_gbs(); }

/// Of the row's collective.
AxisSpec sizes_axis(const bench::Measurement& row) {
  const bool has_parts = bench::find_collective(row.collective)->has_parts;
  return {.title = has_parts ? "bytes of all ranks' parts" : "bytes on each rank",
          .log = true,
          .binary = true,
          .label = bench::rough_size};
}

Curve curve_of(const bench::Series& series, Quantity quantity) {
  Curve curve;
  for (const bench::Measurement& m : series.curve)
    curve.add(static_cast<double>(m.bytes), quantity(m));
  return curve;
}

/// The rows that decide nothing, as hollow points; none where all do.
void add_hollow(Plot& plot, const bench::Series& series, Quantity quantity, int color) {
  Series points{.color = color, .look = Look::hollow, .named = false};
  for (const bench::Measurement& m : series.rows) {
    if (!m.decides()) points.curve.add(static_cast<double>(m.bytes), quantity(m));
  }
  if (points.curve.size() > 0) plot.series.push_back(points);
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

/// The row as if its calls had taken so long.
bench::Measurement at_time(bench::Measurement row, double microseconds) {
  row.median_us = microseconds;
  return row;
}

/// Sets the band from the quickest call of each size to the 99th percentile, over all its rows.
void add_spread(Series& line, const bench::Series& series, Quantity quantity) {
  for (const bench::Measurement& m : series.curve) {
    double quick = m.min_us, slow = m.p99_us;
    for (const bench::Measurement& row : series.rows) {
      if (row.bytes != m.bytes || !row.decides()) continue;
      quick = std::min(quick, row.min_us);
      slow = std::max(slow, row.p99_us);
    }
    const auto [low, high] = std::minmax({quantity(at_time(m, quick)), quantity(at_time(m, slow))});
    line.low.push_back(low);
    line.high.push_back(high);
  }
}

void add_lines(Plot& plot, const Group& group, Quantity quantity) {
  for (const bench::Series* series : group) {
    Series& line =
        plot.series.emplace_back(Series{name_in(group, *series), curve_of(*series, quantity),
                                        color_of(group, *series), Look::dotted_line});
    if (line.color != kGrey) add_spread(line, *series, quantity);
    add_hollow(plot, *series, quantity, line.color);
  }
}

struct PlotKind {
  const char* id;
  const char* title;
  const char* unit;
  Quantity quantity;
  bool least;  // the best is the least
};

constexpr const char* kSpread = "band: quickest call to p99";

constexpr PlotKind kTime{"time", "Time", "µs", time_us, true};
constexpr PlotKind kBusbw{"busbw", "Bus bandwidth", "GB/s", busbw, false};

Plot empty_plot(const PlotKind& kind, const Group& group, const std::string& id,
                const std::string& note) {
  return {.id = id,
          .title = kind.title,
          .note = note,
          .x = sizes_axis(group.front()->rows.front()),
          .y = {.title = kind.unit, .log = true},
          .series = {}};
}

Html main_plot(const bench::Comparison& comparison, const std::vector<Group>& groups, int number,
               const PlotKind& kind) {
  Plot plot = empty_plot(kind, groups.front(), fmt::format("{}-{}", kind.id, number),
                         fmt::format("median, {} ranks; {}{}", comparison.ranks, kSpread,
                                     groups.size() > 1 ? "; dashed: the best of others" : ""));
  add_lines(plot, groups.front(), kind.quantity);
  for (std::size_t i = 1; i < groups.size(); ++i) {
    plot.series.push_back({name_of(groups, groups[i]),
                           best_of(groups[i], kind.quantity, kind.least), kGrey, Look::dashed});
  }
  return figure_of(plot);
}

Html engine_plot(const std::vector<Group>& groups, int number, std::size_t index,
                 const PlotKind& kind) {
  Plot plot = empty_plot(kind, groups[index], fmt::format("{}-{}-{}", kind.id, number, index + 1),
                         fmt::format("{}, median; {}", name_of(groups, groups[index]), kSpread));
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

/// "0.594 µs, 15.4 GB/s"
std::string model_text(const comm::CostModel& model) {
  std::string latency = with_digits(1e6 * model.latency_s) + " µs";
  if (!(model.seconds_per_byte > 0)) return latency;
  return fmt::format("{}, {} GB/s", latency, with_digits(1e-9 / model.seconds_per_byte));
}

Plot model_plot(const Group& group, const bench::Series& series, int number) {
  const int color = color_of(group, series);
  const bench::Measurement& row = series.rows.front();
  const std::string name = name_in(group, series);  // with the transport, where there are several
  const std::string more = name == row.strategy ? "" : "-" + row.transport;
  Plot plot{.id = fmt::format("model-{}-{}{}", number, row.strategy, more),
            .title = fmt::format("{}: {}", name, model_text(series.fit->model)),
            .note = series.knows_error()
                        ? fmt::format("off by {} %, at worst {} %",
                                      with_decimals(100 * series.fit->median_error, 0),
                                      with_decimals(100 * series.fit->worst_error, 0))
                        : "through two points",
            .x = sizes_axis(series.rows.front()),
            .y = {.title = "µs", .log = true},
            .series = {{.name = "model",
                        .curve = model_curve(series),
                        .color = color,
                        .look = Look::dashed,
                        .named = false},
                       {.name = "measured",
                        .curve = curve_of(series, time_us),
                        .color = color,
                        .look = Look::points,
                        .named = false}}};
  add_hollow(plot, series, time_us, color);
  return plot;
}

/// Gives them one axis of time, so that they can be compared.
void share_axis(std::vector<Plot>& plots) {
  AxisSpec shared = plots.front().y;
  for (const Plot& plot : plots) {
    for (const Series& series : plot.series) {
      for (const double y : series.curve.y) {
        if (!std::isfinite(y) || y <= 0) continue;
        shared.include_low = std::min(shared.include_low, y);
        shared.include_high = std::max(shared.include_high, y);
      }
    }
  }
  for (Plot& plot : plots) plot.y = shared;
}

}  // namespace

Html plots_of(const bench::Comparison& comparison, int number) {
  const std::vector<Group> groups = groups_of(comparison);
  Html html = "<div class=\"grid\">\n";
  for (const PlotKind& kind : {kTime, kBusbw}) html += main_plot(comparison, groups, number, kind);
  for (std::size_t i = 1; i < groups.size(); ++i) {
    for (const PlotKind& kind : {kTime, kBusbw}) {
      html += engine_plot(groups, number, i, kind);
    }
  }
  return html + "</div>\n";
}

Html model_plots_of(const bench::Comparison& comparison, int number) {
  const Group group = groups_of(comparison).front();
  std::vector<Plot> plots;
  for (const bench::Series* series : group) {
    if (series->fit) plots.push_back(model_plot(group, *series, number));
  }
  if (plots.empty()) return "";
  share_axis(plots);
  Html html = "<div class=\"grid multiples\">\n";
  for (const Plot& plot : plots) html += figure_of(plot);
  return html + "</div>\n";
}

}  // namespace ringlet::app::report
