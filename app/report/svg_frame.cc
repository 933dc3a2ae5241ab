#include "app/report/svg_frame.h"

#include <algorithm>
#include <cmath>

namespace ringlet::app::report {

Html head_of(const std::string& id, const std::string& title, const std::string& note) {
  return markup("<figure class=\"plot\" id=\"{}\"><figcaption>{}{}</figcaption>\n", id, title,
                note.empty() ? Html() : markup(" <small>{}</small>", note));
}

Html legend_of(const std::vector<LegendEntry>& entries) {
  if (entries.size() < 2) return "";
  Html html = "<ul class=\"legend\">";
  for (const LegendEntry& entry : entries) {
    print(html, "<li><i class=\"c{}{}\"></i>{}</li>", entry.color, entry.dashed ? " dashed" : "",
          entry.name);
  }
  return html + "</ul>\n";
}

void draw_y_axis(Html& svg, const Axis& y, const std::string& title, double right) {
  for (const Axis::Mark& mark : y.marks()) {
    print(svg, "<path class=\"mark\" d=\"M{} {:.1f}H{}\"/>", kLeft, y.at(mark.value), right);
    if (mark.label.empty()) continue;
    print(svg, "<text class=\"y\" x=\"{}\" y=\"{:.1f}\">{}</text>", kLeft - 7, y.at(mark.value),
          mark.label);
  }
  if (!title.empty()) {
    print(svg, "<text class=\"y-title\" x=\"{}\" y=\"{}\">{}</text>", kLeft, kTop - 3, title);
  }
}

void draw_x_axis(Html& svg, const Axis& x, const std::string& title, double right) {
  for (const Axis::Mark& mark : x.marks()) {
    print(svg, "<path class=\"tick\" d=\"M{:.1f} {}v5\"/>", x.at(mark.value), kBottom);
    if (mark.label.empty()) continue;
    print(svg, "<text class=\"x\" x=\"{:.1f}\" y=\"{}\">{}</text>", x.at(mark.value), kBottom + 18,
          mark.label);
  }
  draw_base_line(svg, title, right);
}

void draw_base_line(Html& svg, const std::string& title, double right) {
  print(svg, "<path class=\"axis\" d=\"M{} {}H{}\"/>", kLeft, kBottom, right);
  print(svg, "<text class=\"x title\" x=\"{}\" y=\"{}\">{}</text>", right, kBottom + kTitleBelow,
        title);
}

Html open_svg(const std::string& label, const Html& more) {
  return markup("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\"{}>\n", kWidth, kHeight,
                label, more);
}

Html empty_figure(const std::string& id, const std::string& title) {
  return head_of(id, title, "") + "<p class=\"nothing\">nothing was recorded</p></figure>\n";
}

namespace {

/// "M1 2L3 4": a line with its gaps.
Html path_of(const Curve& curve, const Axis& x, const Axis& y) {
  Html path;
  bool open = false;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const bool shown = x.shows(curve.x[i]) && y.shows(curve.y[i]);
    if (shown) print(path, "{}{:.1f} {:.1f}", open ? "L" : "M", x.at(curve.x[i]), y.at(curve.y[i]));
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

void draw_points(Html& svg, const Series& series, const Axis& x, const Axis& y) {
  const bool all = series.look == Look::points || series.look == Look::hollow ||
                   series.look == Look::dotted_line;
  const Curve& curve = series.curve;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    if (!x.shows(curve.x[i]) || !y.shows(curve.y[i])) continue;
    if (!all && !stands_alone(curve, i, y)) continue;
    print(svg, "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.6\"/>", x.at(curve.x[i]),
          y.at(curve.y[i]));
  }
}

/// Steps and bytes are whole, and exact.
Html positions_of(const std::vector<double>& values) {
  Html text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ",";
    if (!std::isfinite(values[i])) continue;
    if (values[i] == std::round(values[i])) {
      print(text, "{:.17g}", values[i]);
    } else {
      print(text, "{:.9g}", values[i]);
    }
  }
  return text;
}

Html numbers_of(const std::vector<double>& values) {
  Html text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ",";
    if (std::isfinite(values[i])) print(text, "{:.5g}", values[i]);
  }
  return text;
}

/// The lines along one side of a band, with gaps where the band goes on beyond the axis.
Html edge_of(const Series& series, const std::vector<double>& values, const Axis& x,
             const Axis& y) {
  Html path;
  bool was_shown = false, was_held = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool shown =
        x.shows(series.curve.x[i]) && y.shows(series.low[i]) && y.shows(series.high[i]);
    const bool held = y.holds(values[i]);
    if (shown) {
      print(path, "{}{:.1f} {:.1f}", was_shown && (was_held || held) ? "L" : "M",
            x.at(series.curve.x[i]), y.at(values[i]));
    }
    was_shown = shown;
    was_held = held;
  }
  return path;
}

}  // namespace

void draw_series(Html& svg, const Series& series, const Axis& x, const Axis& y) {
  const char* look = series.look == Look::faint    ? " faint"
                     : series.look == Look::dashed ? " dashed"
                     : series.look == Look::hollow ? " hollow"
                                                   : "";
  print(svg, "<g class=\"series c{}{}\"", series.color % kColors, look);
  if (series.look != Look::faint && series.look != Look::hollow) {
    print(svg, " data-name=\"{}\" data-x=\"{}\" data-y=\"{}\"", series.name,
          positions_of(series.curve.x), numbers_of(series.curve.y));
  }
  svg += ">";
  if (series.look != Look::points && series.look != Look::hollow) {
    print(svg, "<path d=\"{}\"/>", path_of(series.curve, x, y));
  }
  draw_points(svg, series, x, y);
  svg += "</g>\n";
}

void draw_band(Html& svg, const Series& series, const Axis& x, const Axis& y) {
  const auto shown = [&](std::size_t i) {
    return x.shows(series.curve.x[i]) && y.shows(series.low[i]) && y.shows(series.high[i]);
  };
  const auto point = [&](std::size_t i, double value) {
    return markup("{:.1f} {:.1f}", x.at(series.curve.x[i]), y.at(value));
  };
  Html path;
  for (std::size_t begin = 0, end = 0; begin < series.low.size(); begin = end + 1) {
    Html back;
    for (end = begin; end < series.low.size() && shown(end); ++end) {
      print(path, "{}{}", end == begin ? "M" : "L", point(end, series.high[end]));
      back = markup("L{}{}", point(end, series.low[end]), back);
    }
    if (end > begin) path += back + "Z";
  }
  if (path.empty()) return;
  print(svg, "<path class=\"band c{0}\" d=\"{1}\"/><path class=\"edge c{0}\" d=\"{2}{3}\"/>\n",
        series.color % kColors, path, edge_of(series, series.low, x, y),
        edge_of(series, series.high, x, y));
}

}  // namespace ringlet::app::report
