// Stacked bars as inline SVG; see svg_plot.h.
#pragma once

#include <string>
#include <vector>

#include "app/report/svg_plot.h"

namespace ringlet::app::report {

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
