#include "app/report/svg_frame.h"

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

}  // namespace ringlet::app::report
