#include "app/report/svg_frame.h"

#include "app/report/html.h"

namespace ringlet::app::report {

std::string head_of(const std::string& id, const std::string& title, const std::string& note) {
  return fmt::format("<figure class=\"plot\" id=\"{}\"><figcaption>{}{}</figcaption>\n",
                     escaped(id), escaped(title),
                     note.empty() ? "" : fmt::format(" <small>{}</small>", escaped(note)));
}

std::string legend_of(const std::vector<LegendEntry>& entries) {
  if (entries.size() < 2) return "";
  std::string html = "<ul class=\"legend\">";
  for (const LegendEntry& entry : entries) {
    print(html, "<li><i class=\"c{}{}\"></i>{}</li>", entry.color, entry.dashed ? " dashed" : "",
          escaped(entry.name));
  }
  return html + "</ul>\n";
}

void draw_y_axis(std::string& svg, const Axis& y, const std::string& title, double right) {
  for (const Axis::Mark& mark : y.marks()) {
    print(svg, "<path class=\"mark\" d=\"M{} {:.1f}H{}\"/>", kLeft, y.at(mark.value), right);
    if (mark.label.empty()) continue;
    print(svg, "<text class=\"y\" x=\"{}\" y=\"{:.1f}\">{}</text>", kLeft - 7, y.at(mark.value),
          escaped(mark.label));
  }
  if (!title.empty()) {
    print(svg, "<text class=\"y-title\" x=\"{}\" y=\"{}\">{}</text>", kLeft, kTop - 3,
          escaped(title));
  }
}

void draw_x_axis(std::string& svg, const Axis& x, const std::string& title, double right) {
  for (const Axis::Mark& mark : x.marks()) {
    print(svg, "<path class=\"tick\" d=\"M{:.1f} {}v5\"/>", x.at(mark.value), kBottom);
    if (mark.label.empty()) continue;
    print(svg, "<text class=\"x\" x=\"{:.1f}\" y=\"{}\">{}</text>", x.at(mark.value), kBottom + 18,
          escaped(mark.label));
  }
  draw_base_line(svg, title, right);
}

void draw_base_line(std::string& svg, const std::string& title, double right) {
  print(svg, "<path class=\"axis\" d=\"M{} {}H{}\"/>", kLeft, kBottom, right);
  print(svg, "<text class=\"x title\" x=\"{}\" y=\"{}\">{}</text>", right, kBottom + kTitleBelow,
        escaped(title));
}

std::string open_svg(const std::string& label, const std::string& more) {
  return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\"{}>\n", kWidth,
                     kHeight, escaped(label), more);
}

std::string empty_figure(const std::string& id, const std::string& title) {
  return head_of(id, title, "") + "<p class=\"nothing\">nothing was recorded</p></figure>\n";
}

}  // namespace ringlet::app::report
