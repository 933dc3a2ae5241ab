// What plots have in common: the figure with its caption and legend, the drawing's size, its axes,
// and a series within them: the line, its points, and the band around it.
#pragma once

#include <string>
#include <vector>

#include "app/report/axis.h"
#include "app/report/html.h"
#include "app/report/svg_plot.h"

namespace ringlet::app::report {

// In the drawing's units; the page scales it to its column.
inline constexpr double kWidth = 480, kHeight = 270;
inline constexpr double kLeft = 56, kRight = 466, kTop = 16, kBottom = 228;
inline constexpr double kTitleBelow = 36;  // from the plot's bottom to the title of x
inline constexpr int kMarksX = 6, kMarksY = 5;

/// The figure's begin and its caption.
Html head_of(const std::string& id, const std::string& title, const std::string& note);

struct LegendEntry {
  std::string name;
  int color = 0;
  bool dashed = false;
};

/// Nothing for a single entry: the caption says what it is.
Html legend_of(const std::vector<LegendEntry>& entries);

/// The drawing's begin. `label` is read to those who cannot see it; `more` are attributes.
Html open_svg(const std::string& label, const Html& more = {});

// `right` is where the plot ends.
void draw_y_axis(Html& svg, const Axis& y, const std::string& title, double right = kRight);
void draw_x_axis(Html& svg, const Axis& x, const std::string& title, double right = kRight);
/// The line at the bottom, and what it counts.
void draw_base_line(Html& svg, const std::string& title, double right = kRight);

/// A whole figure that says that there is nothing to draw.
Html empty_figure(const std::string& id, const std::string& title);

/// The line and its points, with the numbers for the read-outs.
void draw_series(Html& svg, const Series& series, const Axis& x, const Axis& y);

/// The series' spread, as one shape for each stretch without a gap, and its edges; nothing where it
/// has none. What is beyond the axis ends at the plot's edge, without an edge of its own.
void draw_band(Html& svg, const Series& series, const Axis& x, const Axis& y);

}  // namespace ringlet::app::report
