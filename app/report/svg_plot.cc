#include "app/report/svg_plot.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/report/end_labels.h"
#include "app/report/svg_frame.h"

namespace ringlet::app::report {

namespace {

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

bool can_show(const AxisSpec& axis, double value) {
  return std::isfinite(value) && (!axis.log || value > 0);
}

bool can_show(const Plot& plot, const Curve& curve, std::size_t i) {
  return can_show(plot.x, curve.x[i]) && can_show(plot.y, curve.y[i]);
}

/// Calls f(series, i) for each point that can be shown.
template <class F>
void for_each_point(const Plot& plot, F f) {
  for (const Series& series : plot.series) {
    for (std::size_t i = 0; i < series.curve.size(); ++i) {
      if (can_show(plot, series.curve, i)) f(series, i);
    }
  }
}

/// The lines' range with that of the bands around them. Bands make an axis a tenth longer at each
/// end at most, so that one call that was interrupted does not flatten the lines; whole ones ten
/// times, and any length beside a flat line.
Range with_bands(const Plot& plot, const Range& lines, const Range& bands) {
  if (lines.empty() || bands.empty()) return lines;
  const bool log = plot.y.log;
  const auto up = [&](double value) { return log ? std::log(value) : value; };
  const auto down = [&](double value) { return log ? std::exp(value) : value; };
  const double low = up(std::min(lines.low, plot.y.include_low));
  const double high = up(std::max(lines.high, plot.y.include_high));
  const double limit = !plot.whole_bands ? (high - low) / 10
                       : high > low      ? (high - low) * 10
                                         : std::numeric_limits<double>::infinity();
  Range range = lines;
  range.add(std::max(bands.low, down(up(lines.low) - limit)));
  range.add(std::min(bands.high, down(up(lines.high) + limit)));
  return range;
}

Range y_range(const Plot& plot) {
  Range lines, bands;
  for_each_point(plot, [&](const Series& series, std::size_t i) {
    lines.add(series.curve.y[i]);
    for (const auto* edge : {&series.low, &series.high}) {
      if (!edge->empty() && can_show(plot.y, edge->at(i))) bands.add(edge->at(i));
    }
  });
  return with_bands(plot, lines, bands);
}

/// Bands, then what is faint, then grey lines, then those that stand out.
void draw_all_series(Html& svg, const Plot& plot, const Axis& x, const Axis& y) {
  for (const Series& series : plot.series) draw_band(svg, series, x, y);
  const auto depth = [](const Series& series) {
    return series.look == Look::faint ? 0 : series.color % kColors == kGrey ? 1 : 2;
  };
  for (const int wanted : {0, 1, 2}) {
    for (const Series& series : plot.series) {
      if (depth(series) == wanted) draw_series(svg, series, x, y);
    }
  }
}

/// The names and the ends of the lines, in the numbers of the axes; none where there is one line.
std::vector<EndLabel> end_labels_of(const Plot& plot) {
  std::vector<EndLabel> labels;
  for (const Series& series : plot.series) {
    if (series.look == Look::faint || !series.named) continue;
    std::size_t end = series.curve.size();
    while (end > 0 && !can_show(plot, series.curve, end - 1)) --end;
    if (end == 0) continue;
    labels.push_back({.name = series.name,
                      .color = series.color % kColors,
                      .x = series.curve.x[end - 1],
                      .y = series.curve.y[end - 1]});
  }
  if (labels.size() < 2) labels.clear();
  set_texts(labels);
  return labels;
}

bool is_cut(const std::vector<double>& edge, const Axis& y) {
  return std::ranges::any_of(edge, [&](double value) { return y.shows(value) && !y.holds(value); });
}

std::string note_of(const Plot& plot, const Axis& y, std::size_t unnamed) {
  std::vector<std::string> notes;
  if (!plot.note.empty()) notes.push_back(plot.note);
  const auto cut = [&](const Series& one) { return is_cut(one.low, y) || is_cut(one.high, y); };
  if (std::ranges::any_of(plot.series, cut)) notes.emplace_back("a band goes on beyond the plot");
  if (unnamed > 0) notes.push_back(fmt::format("the pointer names {} more", unnamed));
  return fmt::format("{}", fmt::join(notes, "; "));
}

/// The attributes from which the page's script computes the position of a number.
Html scale_attributes(const Plot& plot, const Axis& x, const Axis& y, double right) {
  return markup(
      " data-box=\"{},{},{},{}\" data-xrange=\"{:.15g},{:.15g},{}\""
      " data-yrange=\"{:.15g},{:.15g},{}\" data-xname=\"{}\"{}",
      kLeft, right, kTop, kBottom, x.low(), x.high(), plot.x.log ? 1 : 0, y.low(), y.high(),
      plot.y.log ? 1 : 0, plot.x.title, plot.y.percent ? " data-percent" : "");
}

}  // namespace

Html figure_of(const Plot& plot) {
  Range xs;
  for_each_point(plot, [&](const Series& series, std::size_t i) { xs.add(series.curve.x[i]); });
  if (xs.empty()) return empty_figure(plot.id, plot.title);
  const Range ys = y_range(plot);
  std::vector<EndLabel> labels = end_labels_of(plot);
  const double right = labels.empty() ? kRight : kWidth - room_for(labels);
  const Axis x(plot.x, xs.low, xs.high, kLeft, right, kMarksX);
  const Axis y(plot.y, ys.low, ys.high, kBottom, kTop, kMarksY);
  for (EndLabel& label : labels) {
    label.x = x.at(label.x);
    label.y = y.at(label.y);
  }
  Html svg = open_svg(plot.title, scale_attributes(plot, x, y, right));
  draw_y_axis(svg, y, plot.y.title, right);
  draw_x_axis(svg, x, plot.x.title, right);
  draw_all_series(svg, plot, x, y);
  const std::size_t unnamed = draw_end_labels(svg, std::move(labels), right);
  return head_of(plot.id, plot.title, note_of(plot, y, unnamed)) + svg + "</svg></figure>\n";
}

}  // namespace ringlet::app::report
