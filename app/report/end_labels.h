// The names of a plot's lines, written where the lines end. Where ends are close to each other the
// names move apart, and a thin stroke leads from each line to its name.
#pragma once

#include <string>
#include <vector>

#include "app/report/html.h"

namespace ringlet::app::report {

struct EndLabel {
  std::string name{};
  std::string text{};  ///< the name as it is written: set_texts()
  int color = 0;
  double x = 0, y = 0;  ///< where the line ends
};

/// The positions nearest to the wanted ones that are at least `gap` apart, in their order, and
/// between `low` and `high`. `wanted` is in ascending order, and there is room for all.
std::vector<double> spread_out(std::vector<double> wanted, double gap, double low, double high);

/// Shortens names that are long.
void set_texts(std::vector<EndLabel>& labels);

/// The width that the texts take, in the drawing's units.
double room_for(const std::vector<EndLabel>& labels);

/// Draws the names behind `right`, where the plot ends. There is room for some sixteen; of more,
/// the grey ones that come last have no name. Returns how many those are.
std::size_t draw_end_labels(Html& svg, std::vector<EndLabel> labels, double right);

}  // namespace ringlet::app::report
