#include "app/report/end_labels.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/report/short_names.h"
#include "app/report/svg_frame.h"
#include "app/report/svg_plot.h"

namespace ringlet::app::report {

namespace {

// In the drawing's units, for the larger letters that a telephone gets (page.css).
constexpr double kLine = 13.8;
constexpr double kLeader = 14;  // from a line's end to its name
constexpr std::size_t kMostColumns = 22;

void draw_label(Html& svg, const EndLabel& label, double right, double y) {
  const char* strong = label.color == kGrey ? "" : " strong";
  print(svg, "<path class=\"leader c{}\" d=\"M{:.1f} {:.1f}H{:.1f}L{:.1f} {:.1f}\"/>", label.color,
        label.x, label.y, right, right + kLeader - 4, y);
  print(svg, "<text class=\"name c{}{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}<title>{}</title></text>\n",
        label.color, strong, right + kLeader, y, label.text, label.name);
}

}  // namespace

// Without the gaps the positions need only stay in order. Neighbours that are out of order share
// their mean, which is the nearest for all of them.
std::vector<double> spread_out(std::vector<double> wanted, double gap, double low, double high) {
  struct Block {
    double sum;
    std::size_t count;
    double mean() const { return sum / static_cast<double>(count); }
  };
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    Block block{wanted[i] - gap * static_cast<double>(i), 1};
    while (!blocks.empty() && blocks.back().mean() >= block.mean()) {
      block = {block.sum + blocks.back().sum, block.count + blocks.back().count};
      blocks.pop_back();
    }
    blocks.push_back(block);
  }
  const double last = high - gap * (static_cast<double>(wanted.size()) - 1);
  std::size_t i = 0;
  for (const Block& block : blocks) {
    const double position = std::max(low, std::min(block.mean(), last));
    for (std::size_t k = 0; k < block.count; ++k, ++i) {
      wanted[i] = position + gap * static_cast<double>(i);
    }
  }
  return wanted;
}

void set_texts(std::vector<EndLabel>& labels) {
  std::vector<std::string> names;
  for (const EndLabel& label : labels) names.push_back(label.name);
  names = shortened(names, kMostColumns);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i].text = std::move(names[i]);
}

double room_for(const std::vector<EndLabel>& labels) {
  double widest = 0;
  for (const EndLabel& label : labels) {
    widest = std::max(widest, width_of(label.text));
  }
  return kLeader + widest;
}

std::size_t draw_end_labels(Html& svg, std::vector<EndLabel> labels, double right) {
  std::stable_sort(labels.begin(), labels.end(), [](const EndLabel& a, const EndLabel& b) {
    return (a.color != kGrey) > (b.color != kGrey);
  });
  constexpr auto kMost = static_cast<std::size_t>((kBottom - kTop) / kLine) + 1;
  const std::size_t unnamed = labels.size() - std::min(labels.size(), kMost);
  labels.resize(labels.size() - unnamed);
  std::stable_sort(labels.begin(), labels.end(),
                   [](const EndLabel& a, const EndLabel& b) { return a.y < b.y; });
  std::vector<double> positions;
  for (const EndLabel& label : labels) positions.push_back(label.y);
  positions = spread_out(std::move(positions), kLine, kTop, kBottom);
  for (std::size_t i = 0; i < labels.size(); ++i) draw_label(svg, labels[i], right, positions[i]);
  return unnamed;
}

}  // namespace ringlet::app::report
