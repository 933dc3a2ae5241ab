#include <algorithm>
#include <cmath>

#include "app/report/sections.h"
#include "app/report/short_names.h"
#include "app/report/svg_frame.h"

namespace ringlet::app::report {

namespace {

constexpr std::int64_t kNumbersUpTo = 20;  // classes
constexpr std::int64_t kNamesUpTo = 40;
constexpr std::size_t kNameColumns = 12;  // of a name
constexpr double kNames = 92;             // room for the rows' names
constexpr double kBelow = 78;             // and for the columns', which stand aslant
constexpr double kSide = 380;             // of the matrix
constexpr double kDarkest = 0.77;  // on which ink is legible still, in the light and in the dark

struct Grid {
  const TestResults& results;
  double cell = 0;
  double left = kNames, top = 6;
};

void draw_cell(Html& svg, const Grid& grid, std::int64_t label, std::int64_t answer,
               std::int64_t samples) {
  const std::int64_t count = grid.results.count(label, answer);
  if (count == 0) return;
  const double share = static_cast<double>(count) / static_cast<double>(samples);
  const double gap = std::min(1.0, grid.cell / 8);  // between cells
  const double x = grid.left + grid.cell * static_cast<double>(answer);
  const double y = grid.top + grid.cell * static_cast<double>(label);
  const auto& names = grid.results.images->target_names();
  print(svg,
        "<g><title>{} taken for {}: {} of {}</title><rect class=\"cell\" x=\"{:.2f}\" y=\"{:.2f}\" "
        "width=\"{:.2f}\" height=\"{:.2f}\" fill-opacity=\"{:.3f}\"/>",
        names[static_cast<std::size_t>(label)], names[static_cast<std::size_t>(answer)], count,
        samples, x + gap / 2, y + gap / 2, grid.cell - gap, grid.cell - gap,
        kDarkest * std::sqrt(share));  // so that a few of a thousand show
  if (grid.results.classes() <= kNumbersUpTo) {
    print(svg, "<text class=\"n{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>",
          share > 0.3 ? " strong" : "", x + grid.cell / 2, y + grid.cell / 2, count);
  }
  svg += "</g>\n";
}

void draw_names(Html& svg, const Grid& grid) {
  const auto& names = grid.results.images->target_names();
  const std::vector<std::string> texts = shortened(names, kNameColumns);
  for (std::size_t k = 0; k < names.size(); ++k) {
    const double middle = grid.cell * (static_cast<double>(k) + 0.5);
    print(svg, "<text class=\"row\" x=\"{}\" y=\"{:.1f}\">{}<title>{}</title></text>",
          grid.left - 7, grid.top + middle, texts[k], names[k]);
    const double x = grid.left + middle, y = grid.top + kSide + 12;
    print(
        svg,
        "<text class=\"row\" x=\"{0:.1f}\" y=\"{1:.1f}\" transform=\"rotate(-40 {0:.1f} {1:.1f})\">"
        "{2}<title>{3}</title></text>\n",
        x, y, texts[k], names[k]);
  }
}

}  // namespace

Html confusion_figure(const TestResults& results, const std::string& id) {
  const std::int64_t classes = results.classes();
  const Grid grid{results, kSide / static_cast<double>(classes)};
  Html html = head_of(id, "Confusion matrix", "rows: what it is; columns: the answer");
  print(html,
        "<svg class=\"confusion\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Confusion "
        "matrix\">\n",
        kNames + kSide + 8, kSide + kBelow);
  print(html, "<rect class=\"frame\" x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{2}\"/>\n",
        grid.left, grid.top, kSide);
  for (std::int64_t label = 0; label < classes; ++label) {
    const std::int64_t samples = results.samples_of(label);
    for (std::int64_t answer = 0; answer < classes; ++answer) {
      draw_cell(html, grid, label, answer, samples);
    }
  }
  if (classes <= kNamesUpTo) draw_names(html, grid);
  return html + "</svg></figure>\n";
}

}  // namespace ringlet::app::report
