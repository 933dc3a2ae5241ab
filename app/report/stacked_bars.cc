#include <algorithm>
#include <cmath>

#include "app/report/short_names.h"
#include "app/report/svg_frame.h"
#include "app/report/svg_plot.h"

namespace ringlet::app::report {

namespace {

/// A bar's parts from the bottom up, each with its number as a title that browsers show.
void draw_bar(Html& svg, const StackedBars& bars, std::size_t bar, const Axis& y, double left,
              double width) {
  double below = 0;
  for (const StackedBars::Part& part : bars.parts) {
    const double value = part.values[bar];
    if (!(value > 0)) continue;
    const double top = y.at(below + value), bottom = y.at(below);
    print(svg,
          "<rect class=\"c{}\" x=\"{:.1f}\" y=\"{:.2f}\" width=\"{:.1f}\" height=\"{:.2f}\">"
          "<title>{}, {}: {}</title></rect>",
          part.color % kColors, left, top, width, bottom - top, bars.labels[bar], part.name,
          bars.y.name_of(value));
    below += value;
  }
}

/// Below the bars, each `every`-th one's label.
void draw_labels(Html& svg, const StackedBars& bars, double pitch, std::size_t every) {
  constexpr double kColumn = 7.4;           // of a text, in the drawing's units
  constexpr std::size_t kLeastColumns = 6;  // so that a number is whole
  const double room = pitch * static_cast<double>(every) / kColumn;
  const std::vector<std::string> texts =
      shortened(bars.labels, std::max(kLeastColumns, static_cast<std::size_t>(room)));
  for (std::size_t bar = 0; bar < bars.labels.size(); bar += every) {
    print(svg, "<text class=\"x\" x=\"{:.1f}\" y=\"{}\">{}<title>{}</title></text>",
          kLeft + pitch * (static_cast<double>(bar) + 0.5), kBottom + 18, texts[bar],
          bars.labels[bar]);
  }
}

double tallest(const StackedBars& bars) {
  double highest = 0;
  for (std::size_t bar = 0; bar < bars.labels.size(); ++bar) {
    double height = 0;
    for (const StackedBars::Part& part : bars.parts) height += std::max(0.0, part.values[bar]);
    highest = std::max(highest, height);
  }
  return highest;
}

}  // namespace

Html figure_of(const StackedBars& bars) {
  const double highest = tallest(bars);
  if (!(highest > 0) || !std::isfinite(highest)) return empty_figure(bars.id, bars.title);
  constexpr double kWidest = 64;       // of a bar
  constexpr std::size_t kLabels = 12;  // that have room beside each other
  AxisSpec spec = bars.y;
  spec.round = true;
  const Axis y(spec, 0, highest, kBottom, kTop, kMarksY);
  Html html = head_of(bars.id, bars.title, bars.note);
  std::vector<LegendEntry> entries;
  for (const StackedBars::Part& part : bars.parts) {
    entries.push_back({part.name, part.color % kColors});
  }
  html += legend_of(entries);
  html += open_svg(bars.title);
  draw_y_axis(html, y, bars.y.title);
  const std::size_t count = bars.labels.size();
  const double pitch = (kRight - kLeft) / static_cast<double>(count);
  const double width = std::min(kWidest, pitch * 0.72);
  const std::size_t every = (count + kLabels - 1) / kLabels;
  for (std::size_t bar = 0; bar < count; ++bar) {
    const double middle = kLeft + pitch * (static_cast<double>(bar) + 0.5);
    draw_bar(html, bars, bar, y, middle - width / 2, width);
  }
  draw_labels(html, bars, pitch, every);
  draw_base_line(html, bars.x_title);
  return html + "</svg></figure>\n";
}

}  // namespace ringlet::app::report
