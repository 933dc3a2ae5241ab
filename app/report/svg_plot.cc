#include "app/report/svg_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/report/html.h"
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
};

bool can_show(const AxisSpec& axis, double value) {
  return std::isfinite(value) && (!axis.log || value > 0);
}

/// "M1 2L3 4": a line with its gaps.
std::string path_of(const Curve& curve, const Axis& x, const Axis& y) {
  std::string path;
  bool open = false;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const bool shown = x.shows(curve.x[i]) && y.shows(curve.y[i]);
    if (shown) print(path, "{}{:.1f} {:.1f}", open ? 'L' : 'M', x.at(curve.x[i]), y.at(curve.y[i]));
    open = shown;
  }
  return path;
}

/// Whether a point has no neighbour to draw a line to: between two gaps, or the only one.
bool stands_alone(const Curve& curve, std::size_t i, const Axis& y) {
  const bool before = i > 0 && y.shows(curve.y[i - 1]);
  const bool after = i + 1 < curve.size() && y.shows(curve.y[i + 1]);
  return !before && !after;
}

void draw_points(std::string& svg, const Series& series, const Axis& x, const Axis& y) {
  const bool all = series.look == Look::points || series.look == Look::dotted_line;
  const Curve& curve = series.curve;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    if (!x.shows(curve.x[i]) || !y.shows(curve.y[i])) continue;
    if (!all && !stands_alone(curve, i, y)) continue;
    print(svg, "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.6\"/>", x.at(curve.x[i]),
          y.at(curve.y[i]));
  }
}

std::string numbers_of(const std::vector<double>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ',';
    if (std::isfinite(values[i])) print(text, "{:.5g}", values[i]);
  }
  return text;
}

void draw_series(std::string& svg, const Series& series, const Axis& x, const Axis& y) {
  const char* look = series.look == Look::faint    ? " faint"
                     : series.look == Look::dashed ? " dashed"
                                                   : "";
  print(svg, "<g class=\"series c{}{}\"", series.color % kColors, look);
  if (series.look != Look::faint) {
    print(svg, " data-name=\"{}\" data-x=\"{}\" data-y=\"{}\"", escaped(series.name),
          numbers_of(series.curve.x), numbers_of(series.curve.y));
  }
  svg += '>';
  if (series.look != Look::points) {
    print(svg, "<path d=\"{}\"/>", path_of(series.curve, x, y));
  }
  draw_points(svg, series, x, y);
  svg += "</g>\n";
}

/// The attributes from which the page's script computes the place of a number.
std::string scale_attributes(const Plot& plot, const Axis& x, const Axis& y) {
  return fmt::format(
      " data-box=\"{},{},{},{}\" data-xrange=\"{:.8g},{:.8g},{}\" data-yrange=\"{:.8g},{:.8g},{}\""
      " data-xname=\"{}\"{}",
      kLeft, kRight, kTop, kBottom, x.low(), x.high(), plot.x.log ? 1 : 0, y.low(), y.high(),
      plot.y.log ? 1 : 0, escaped(plot.x.title), plot.y.percent ? " data-percent" : "");
}

}  // namespace

std::string figure_of(const Plot& plot) {
  Range xs, ys;
  for (const Series& series : plot.series) {
    for (std::size_t i = 0; i < series.curve.size(); ++i) {
      if (!can_show(plot.x, series.curve.x[i]) || !can_show(plot.y, series.curve.y[i])) continue;
      xs.add(series.curve.x[i]);
      ys.add(series.curve.y[i]);
    }
  }
  if (xs.low > xs.high) return empty_figure(plot.id, plot.title);
  const Axis x(plot.x, xs.low, xs.high, kLeft, kRight, kMarksX);
  const Axis y(plot.y, ys.low, ys.high, kBottom, kTop, kMarksY);
  std::string html = head_of(plot.id, plot.title, plot.note);
  std::vector<LegendEntry> entries;
  for (const Series& series : plot.series) {
    if (series.look == Look::faint) continue;
    entries.push_back({series.name, series.color % kColors, series.look == Look::dashed});
  }
  html += legend_of(entries);
  html += open_svg(plot.title, scale_attributes(plot, x, y));
  draw_y_axis(html, y, plot.y.title);
  draw_x_axis(html, x, plot.x.title);
  for (const bool behind : {true, false}) {
    for (const Series& series : plot.series) {
      if ((series.look == Look::faint) == behind) draw_series(html, series, x, y);
    }
  }
  return html + "</svg></figure>\n";
}

}  // namespace ringlet::app::report
