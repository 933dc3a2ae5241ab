#include "app/report/pipeline_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/report/axis.h"
#include "app/report/page_texts.h"

namespace ringlet::app::report {

namespace {

using train::Simulation;
using train::TimelineSpan;
using Kind = TimelineSpan::Kind;

constexpr double kTimelineWidth = 1092, kRowsLeft = 168, kRowsRight = 1078;
constexpr double kRowsTop = 10, kBar = 28, kHeldTop = 3, kHeldHigh = 14, kBetweenRows = 26;
constexpr double kPitch = kBar + kHeldTop + kHeldHigh + kBetweenRows;
constexpr double kAxisHigh = 40;
constexpr double kDigit = 7.2;       // wide, of a micro-batch's number
constexpr int kMostArrows = 400;     // of a drawing
constexpr double kArrowsApart = 13;  // at least, on average

const char* class_of(Kind kind) {
  switch (kind) {
    case Kind::forward:
      return "f";
    case Kind::backward:
      return "b";
    case Kind::activation:
    case Kind::gradient:
      return "m";
    case Kind::sync:
      return "s";
    case Kind::wait:
      return "w";
  }
  return "w";
}

std::string what(const TimelineSpan& span) {
  switch (span.kind) {
    case Kind::forward:
      return fmt::format("forward of micro-batch {}", span.micro_batch);
    case Kind::backward:
      return fmt::format("backward of micro-batch {}", span.micro_batch);
    case Kind::activation:
      return fmt::format("activation {} {} stage {}", span.micro_batch,
                         span.peer > span.stage ? "to" : "from", span.peer);
    case Kind::gradient:
      return fmt::format("gradient {} {} stage {}", span.micro_batch,
                         span.peer < span.stage ? "to" : "from", span.peer);
    case Kind::sync:
      return "sum of gradients, and update";
    case Kind::wait:
      return "waiting";
  }
  return "";
}

bool sends(const TimelineSpan& span) {
  if (span.kind == Kind::activation) return span.peer > span.stage;
  return span.kind == Kind::gradient && span.peer < span.stage;
}

class TimelineDrawing {
 public:
  explicit TimelineDrawing(const PipelineTimeline& timeline)
      : timeline_(timeline),
        step_(timeline.step),
        stages_(static_cast<int>(step_.stages.size())),
        factor_(timeline.in_seconds ? 1e3 : 100 / positive(step_.seconds)),
        axis_({.title = timeline.in_seconds ? "ms" : "% of the step",
               .include_low = 0,
               .include_high = factor_ * step_.seconds},
              0, factor_ * step_.seconds, kRowsLeft, kRowsRight, 8) {}

  double height() const { return kRowsTop + stages_ * kPitch - kBetweenRows + kAxisHigh; }

  Html draw() {
    Html svg;
    draw_axis(svg);
    for (int stage = 0; stage < stages_; ++stage) draw_row(svg, stage);
    if (has_room_for_arrows()) {
      for (const TimelineSpan& span : step_.timeline) {
        if (sends(span)) draw_arrow(svg, span);
      }
    }
    return svg;
  }

 private:
  static double positive(double seconds) { return seconds > 0 ? seconds : 1; }
  double x(double seconds) const { return axis_.at(factor_ * seconds); }
  static double top(int stage) { return kRowsTop + stage * kPitch; }

  std::string moment(double seconds) const {
    return timeline_.in_seconds ? with_digits(factor_ * seconds, 4) + " ms"
                                : with_decimals(factor_ * seconds, 1) + " %";
  }

  void draw_axis(Html& svg) const {
    const double bottom = height() - kAxisHigh + 4;
    for (const Axis::Mark& mark : axis_.marks()) {
      const double at = axis_.at(mark.value);
      print(svg, "<path class=\"mark\" d=\"M{:.1f} {:.1f}V{:.1f}\"/>", at, kRowsTop - 4, bottom);
      if (mark.label.empty()) continue;
      print(svg, "<text class=\"x\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", at, bottom + 15,
            mark.label);
    }
    print(svg, "<text class=\"x title\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", kRowsRight,
          bottom + 31, timeline_.in_seconds ? "milliseconds" : "percent of the step");
  }

  void draw_row(Html& svg, int stage) const {
    print(svg, "<text class=\"stage\" x=\"0\" y=\"{:.1f}\">stage {}</text>", top(stage) + 13,
          stage);
    if (static_cast<std::size_t>(stage) < timeline_.layers.size()) {
      print(svg, "<text x=\"0\" y=\"{:.1f}\">{}</text>\n", top(stage) + 28,
            timeline_.layers[static_cast<std::size_t>(stage)]);
    }
    for (const TimelineSpan& span : step_.timeline) {
      if (span.stage == stage) draw_span(svg, span);
    }
    draw_held(svg, stage);
  }

  void draw_span(Html& svg, const TimelineSpan& span) const {
    const double left = x(span.begin), width = x(span.end) - left;
    if (!(width > 0)) return;
    print(
        svg,
        "<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\"><title>stage "
        "{}: {}, {} to {}</title></rect>",
        class_of(span.kind), left, top(span.stage), width, kBar, span.stage, what(span),
        moment(span.begin), moment(span.end));
    if (span.kind != Kind::forward && span.kind != Kind::backward) return;
    const std::string number = fmt::format("{}", span.micro_batch);
    if (width < kDigit * static_cast<double>(number.size()) + 2) return;
    print(svg, "<text class=\"n {}n\" x=\"{:.2f}\" y=\"{:.1f}\">{}</text>\n", class_of(span.kind),
          left + width / 2, top(span.stage) + kBar / 2, number);
  }

  bool has_room_for_arrows() const {
    int arrows = 0;
    for (const TimelineSpan& span : step_.timeline) arrows += sends(span) ? 1 : 0;
    const int pairs = std::max(1, 2 * (stages_ - 1));
    return arrows <= kMostArrows && arrows * kArrowsApart <= pairs * (kRowsRight - kRowsLeft);
  }

  /// An activation goes down, a gradient up; of a pair that goes at once one is left of the other.
  void draw_arrow(Html& svg, const TimelineSpan& span) const {
    const bool down = span.peer > span.stage;
    const double aside = down ? -1.8 : 1.8;
    const double from = down ? top(span.stage) + kBar + 1 : top(span.stage) - 1;
    const double to = down ? top(span.peer) - 1.5 : top(span.peer) + kBar + 1.5;
    print(svg,
          "<path class=\"arrow {}\" d=\"M{:.2f} {:.1f}L{:.2f} {:.1f}\" "
          "marker-end=\"url(#pipeline-head)\"/>\n",
          down ? "down" : "up", x(span.begin) + aside, from, x(span.end) + aside, to);
  }

  void draw_held(Html& svg, int stage) const {
    int most = 1;
    for (const train::StageUse& use : step_.stages) most = std::max(most, use.peak_held);
    const double base = top(stage) + kBar + kHeldTop + kHeldHigh;
    std::string path = fmt::format("M{:.2f} {:.1f}", x(0), base);
    for (const HeldFrom& held : held_over_time(step_, stage)) {
      path += fmt::format("H{:.2f}V{:.2f}", x(held.seconds), base - kHeldHigh * held.passes / most);
    }
    path += fmt::format("H{:.2f}V{:.1f}Z", x(step_.seconds), base);
    const int own = step_.stages[static_cast<std::size_t>(stage)].peak_held;
    print(svg,
          "<path class=\"held\" d=\"{}\"><title>stage {} holds {} pass{} at most</title></path>"
          "<text class=\"count\" x=\"{}\" y=\"{:.1f}\">holds {}</text>\n",
          path, stage, own, own == 1 ? "" : "es", kRowsLeft - 8, base - 2, own);
  }

  const PipelineTimeline& timeline_;
  const Simulation& step_;
  int stages_;
  double factor_;
  Axis axis_;
};

constexpr char kArrowHead[] =
    "<defs><marker id=\"pipeline-head\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
    "markerWidth=\"5\" markerHeight=\"5\" orient=\"auto\"><path class=\"head\" d=\"M0 0L8 4L0 "
    "8z\"/></marker></defs>\n";

}  // namespace

std::vector<HeldFrom> held_over_time(const Simulation& step, int stage) {
  std::vector<std::pair<double, int>> changes;
  const bool gradients_leave =
      std::any_of(step.timeline.begin(), step.timeline.end(), [&](const TimelineSpan& span) {
        return span.stage == stage && span.kind == Kind::gradient && sends(span);
      });
  for (const TimelineSpan& span : step.timeline) {
    if (span.stage != stage) continue;
    const bool releases =
        gradients_leave ? span.kind == Kind::gradient && sends(span) : span.kind == Kind::backward;
    if (span.kind == Kind::forward) changes.emplace_back(span.begin, 1);
    if (releases) changes.emplace_back(span.end, -1);
  }
  std::stable_sort(changes.begin(), changes.end());  // what ends comes before what begins then
  std::vector<HeldFrom> held;
  int now = 0;
  for (const auto& [seconds, change] : changes) {
    now += change;
    if (!held.empty() && held.back().seconds == seconds) {
      held.back().passes = now;
    } else {
      held.push_back({seconds, now});
    }
  }
  return held;
}

Html timeline_legend() {
  return "<ul class=\"legend timeline-legend\"><li><i class=\"f\"></i>forward of a "
         "micro-batch</li><li><i class=\"b\"></i>backward</li><li><i class=\"m\"></i>a message "
         "goes</li><li><i class=\"s\"></i>sum and update</li><li><i class=\"w\"></i>waiting</li>"
         "<li><i class=\"held\"></i>passes held</li></ul>\n";
}

Html timeline_of(const PipelineTimeline& timeline) {
  TimelineDrawing drawing(timeline);
  return markup(
             "<div class=\"scroll\"><svg class=\"pipeline\" viewBox=\"0 0 {} {:.0f}\" "
             "role=\"img\" aria-label=\"{}\">\n",
             kTimelineWidth, drawing.height(), timeline.title) +
         Html(kArrowHead) + drawing.draw() + "</svg></div>\n";
}

std::string pipeline_still(const PipelineTimeline& timeline) {
  constexpr double kEdge = 14, kTitle = 34;
  TimelineDrawing drawing(timeline);
  const double width = kTimelineWidth + 2 * kEdge, height = drawing.height() + kTitle + kEdge;
  return markup(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"pipeline still\" width=\"{}\" "
             "height=\"{:.0f}\" viewBox=\"0 0 {} {:.0f}\" font-family=\"sans-serif\" "
             "role=\"img\">\n<title>{}</title>\n<style>{}</style>\n",
             width, height, width, height, timeline.title,
             Html::trusted(kPipelineColours + std::string(kPipelineStyle))) +
         Html(kArrowHead) +
         markup(
             "<rect class=\"paper\" width=\"{}\" height=\"{:.0f}\" rx=\"6\"/>\n<g "
             "transform=\"translate({} {})\">\n<text class=\"still-title\" x=\"0\" "
             "y=\"8\">{}</text>\n<g transform=\"translate(0 {})\">\n",
             width, height, kEdge, kEdge, timeline.title, kTitle - kEdge + 2) +
         drawing.draw() + "</g></g>\n</svg>\n";
}

}  // namespace ringlet::app::report
