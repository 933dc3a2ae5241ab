#include "app/replay/still.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/replay/words.h"
#include "app/report/html.h"

namespace ringlet::app::replay {

using report::Html;
using report::markup;
using report::print;

namespace {

constexpr double kWidth = 720, kMargin = 14, kBetween = 26, kHead = 62;
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#b0569b",
                                    "#c98a00", "#3c9fd8", "#8a6d3b", "#e0527f"};
constexpr const char* kInk = "#1b2430";
constexpr const char* kSoft = "#5b6675";
constexpr const char* kBad = "#b3261e";

/// The steps of a picture where nobody has chosen.
std::vector<int> usual_steps(int steps, int ranks) {
  const int most = ranks <= 16 ? 8 : 4;
  std::vector<int> chosen;
  const int count = std::min(steps, most - 1);
  for (int i = 0; i <= count; ++i) {
    chosen.push_back(count == 0 ? 0 : static_cast<int>(std::lround(1. * i * steps / count)));
  }
  return chosen;
}

class Drawing {
 public:
  Drawing(const Replay& replay, std::vector<int> steps)
      : replay_(replay), steps_(std::move(steps)) {
    const auto ranks = static_cast<double>(replay.ranks());
    const auto parts = static_cast<double>(std::max<std::size_t>(1, replay.parts.size()));
    const double usual = std::clamp(34 * parts, 76., 190.) + kLabel;
    columns_ = std::clamp(static_cast<int>((kWidth - 2 * kMargin + kBetween) / (usual + kBetween)),
                          1, static_cast<int>(steps_.size()));
    panel_ = (kWidth - 2 * kMargin - (columns_ - 1) * kBetween) / columns_;
    panel_ = std::min(panel_, kLabel + 70 * parts);
    gap_ = parts > 16 ? 1 : 5;
    cell_ = (panel_ - kLabel - (parts - 1) * gap_) / parts;
    high_ = ranks > 16 ? 7 : ranks > 8 ? 12 : 20;
    row_ = ranks > 16 ? 9 : ranks > 8 ? 20 : 38;
    panel_high_ = 26 + ranks * row_;
    rows_ = (static_cast<int>(steps_.size()) + columns_ - 1) / columns_;
  }

  Html svg() {
    const double height = kHead + rows_ * (panel_high_ + 12) + 6;
    const TracedCall& call = *replay_.call;
    const std::int64_t messages = replay_.totals.messages;
    const std::string title =
        fmt::format("{}: {} ranks, {} steps, {}", call.name, call.size(), replay_.steps,
                    messages > 0 ? fmt::format("{} messages", messages) : "in each other's memory");
    Html svg = markup(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{:.0f}\" viewBox=\"0 0 {} "
        "{:.0f}\" font-family=\"sans-serif\" font-size=\"11.5\" role=\"img\">\n<title>{}</title>\n"
        "<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"6.5\" refY=\"4\" markerWidth=\"6\" "
        "markerHeight=\"6\" orient=\"auto\">"
        "<path d=\"M0 0L8 4L0 8z\" fill=\"{}\"/></marker></defs>\n"
        "<rect width=\"{}\" height=\"{:.0f}\" rx=\"6\" fill=\"#fff\"/>\n",
        kWidth, height, kWidth, height, title, kInk, kWidth, height);
    print(svg,
          "<text x=\"{}\" y=\"24\" font-size=\"14\" font-weight=\"bold\" fill=\"{}\">{}</text>\n",
          kMargin, kInk, title);
    print(svg, "<text x=\"{}\" y=\"43\" fill=\"{}\">{}</text>\n", kMargin, kSoft,
          "A row is a rank, a column a part of its data; a cell has the stripes of those whose "
          "numbers are in it.");
    define_stripes(svg);
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const int column = static_cast<int>(i) % columns_, row = static_cast<int>(i) / columns_;
      left_ = kMargin + column * (panel_ + kBetween);
      top_ = kHead + row * (panel_high_ + 12);
      draw_panel(svg, steps_[i]);
    }
    return svg + "</svg>\n";
  }

 private:
  static constexpr double kLabel = 24;

  double x(int part) const { return left_ + kLabel + part * (cell_ + gap_); }
  double y(int rank) const { return top_ + 26 + rank * row_; }

  std::string colour(int rank) const {
    if (replay_.ranks() <= 8) return kColours[rank];
    return fmt::format("hsl({} 65% 44%)", 360 * rank / replay_.ranks());
  }

  /// The stripes of all ranks, a unit wide each: cells show a section of them.
  void define_stripes(Html& svg) const {
    svg += "<defs><g id=\"all\">";
    for (int rank = 0; rank < replay_.ranks(); ++rank) {
      print(svg, "<rect x=\"{}\" width=\"1\" height=\"1\" fill=\"{}\"/>", rank, colour(rank));
    }
    svg += "</g></defs>\n";
  }

  void draw_panel(Html& svg, int step) {
    print(svg,
          "<g class=\"panel\"><text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\" "
          "font-weight=\"bold\">{}</text>\n",
          left_ + kLabel, top_ + 14, kInk,
          step == 0 ? std::string("at first") : fmt::format("after step {}", step));
    const auto state = replay_.state_after(step);
    for (int rank = 0; rank < replay_.ranks(); ++rank) {
      if (row_ > 10) {
        print(svg,
              "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"{}\" "
              "font-weight=\"bold\">{}</text>\n",
              left_ + kLabel - 8, y(rank) + high_ / 2 + 4, colour(rank), rank);
      }
      const auto& cells = state[static_cast<std::size_t>(rank)];
      for (std::size_t part = 0; part < cells.size(); ++part) {
        draw_cell(svg, x(static_cast<int>(part)), y(rank), cells[part],
                  step == replay_.steps && replay_.call->failed);
      }
    }
    for (const Flight& flight : replay_.flights) {
      if (flight.step != step || flight.parts == 0) continue;
      draw_message(svg, flight);
    }
    svg += "</g>\n";
  }

  void draw_cell(Html& svg, double left, double top, const comm::Counts& has, bool stuck) const {
    print(svg,
          "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"#eef1f4\"/>",
          left, top, cell_, high_);
    const double stripe = cell_ / static_cast<double>(has.size());
    for (std::size_t rank = 0, end = 0; rank < has.size(); rank = end) {
      const bool is_in = has[rank] > 0;
      for (end = rank + 1; end < has.size() && (has[end] > 0) == is_in;) ++end;
      if (!is_in) continue;
      print(
          svg,
          "<svg x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" viewBox=\"{} 0 {} 1\" "
          "preserveAspectRatio=\"none\"><use href=\"#all\"/></svg>",
          left + static_cast<double>(rank) * stripe, top, static_cast<double>(end - rank) * stripe,
          high_, rank, end - rank);
    }
    const bool whole = is_whole(has), bad = has_twice(has) || (stuck && !whole);
    print(svg,
          "<rect class=\"cell\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" "
          "fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"><title>{}</title></rect>\n",
          left, top, cell_, high_,
          bad     ? kBad
          : whole ? kInk
                  : "#c9d0d8",
          bad                  ? 2.0
          : whole && row_ > 10 ? 1.5
                               : 0.7,
          words_of(has));
  }

  /// From the sender's row to the receiver's, straight to a neighbour and in a bow to others.
  void draw_message(Html& svg, const Flight& flight) const {
    if (row_ <= 10) return;  // there is no room between the rows
    const double wide = flight.parts * cell_ + (flight.parts - 1) * gap_;
    const bool down = flight.to > flight.from;
    const double x1 = x(flight.out_part) + wide / 2, x2 = x(flight.in_part) + wide / 2;
    const double y1 = down ? y(flight.from) + high_ : y(flight.from);
    const double y2 = down ? y(flight.to) : y(flight.to) + high_;
    const bool far = std::abs(flight.to - flight.from) > 1;
    const double bow = far ? std::min(wide * .8, 40.) * (down ? 1 : -1) : 0;
    print(svg,
          "<path class=\"message\" d=\"M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}\" fill=\"none\" "
          "stroke=\"{}\" stroke-width=\"1.3\" marker-end=\"url(#head)\"/>\n",
          x1, y1, (x1 + x2) / 2 + bow, (y1 + y2) / 2, x2, y2, kInk);
  }

  const Replay& replay_;
  std::vector<int> steps_;
  int columns_ = 1, rows_ = 1;
  double panel_ = 0, panel_high_ = 0, gap_ = 0, cell_ = 0, high_ = 0, row_ = 0;
  double left_ = 0, top_ = 0;  // of the panel that is drawn
};

}  // namespace

std::string still_of(const Replay& replay, std::vector<int> steps) {
  if (steps.empty()) steps = usual_steps(replay.steps, replay.ranks());
  return Drawing(replay, std::move(steps)).svg();
}

}  // namespace ringlet::app::replay
