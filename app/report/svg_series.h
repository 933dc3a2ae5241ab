// A series within its plot: the line, its points, and the band around it.
#pragma once

#include "app/report/axis.h"
#include "app/report/html.h"
#include "app/report/svg_plot.h"

namespace ringlet::app::report {

/// The line and its points, with the numbers for the read-outs.
void draw_series(Html& svg, const Series& series, const Axis& x, const Axis& y);

/// The series' spread, as one shape for each stretch without a gap; nothing where it has none. What
/// is beyond the axis ends at the plot's edge.
void draw_band(Html& svg, const Series& series, const Axis& x, const Axis& y);

}  // namespace ringlet::app::report
