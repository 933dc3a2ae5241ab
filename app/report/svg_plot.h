// Plots as inline SVG: lines and points over linear or logarithmic axes, with the lines' names at
// their ends, and with the numbers in the page for the read-outs that its script makes (html.h).
// Without the script, and on paper, they are whole.
//
// Colours are 0 to kColors - 1, chosen so that those who see few of them tell neighbours apart; the
// page's style says which they are, on white and on black. Where many lines are compared, kBest and
// kBaseline stand out, and the rest is kGrey.
#pragma once

#include <string>
#include <vector>

#include "app/report/axis.h"
#include "app/report/curve.h"
#include "app/report/html.h"

namespace ringlet::app::report {

inline constexpr int kColors = 8;
inline constexpr int kBest = 0, kBaseline = 1, kGrey = 7;

enum class Look {
  line,
  dashed,
  faint,       ///< a thin line behind the others, without name and read-outs
  points,      ///< alone, not joined
  hollow,      ///< the same, as rings, without name and read-outs
  dotted_line  ///< a line with its points
};

struct Series {
  std::string name{};
  Curve curve{};
  int color = 0;
  Look look = Look::line;
  /// The spread around each point of the curve, drawn as a band; both empty: none.
  std::vector<double> low{}, high{};
  bool named = true;  ///< at its end, where the plot has several such lines
};

struct Plot {
  std::string id{};  ///< of the figure in the page
  std::string title{};
  std::string note{};  ///< beside the title, in small; may be empty
  AxisSpec x{}, y{};
  std::vector<Series> series{};
  /// Whether bands are intervals, which the axis shows whole; not where that would make the lines
  /// flat. Else they make it a little longer at most.
  bool whole_bands = false;
};

/// <figure id="ID" class="plot">. A plot without a point that can be shown says so.
Html figure_of(const Plot& plot);

/// Bars of parts, one on top of the other: bar i has the parts' values[i], none of them negative.
struct StackedBars {
  struct Part {
    std::string name;
    int color = 0;
    std::vector<double> values;
  };
  std::string id{};
  std::string title{};
  std::string note{};
  std::string x_title{};
  AxisSpec y{};
  std::vector<std::string> labels{};  ///< of the bars
  std::vector<Part> parts{};
};

Html figure_of(const StackedBars& bars);

}  // namespace ringlet::app::report
