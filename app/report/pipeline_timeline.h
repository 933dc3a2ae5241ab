// A step of a pipeline as a drawing: time across, stages down.
//
//   forward and backward   two tones, with the micro-batch's number where there is room
//   waiting                grey
//   a message              a thin arrow from the stage that sends to the one that receives, where
//                          there is room for arrows; the time in which it goes is a sliver of its
//                          own colour in both rows
//   below each row         the passes that the stage holds, as steps
#pragma once

#include <string>
#include <vector>

#include "app/report/html.h"
#include "train/pipeline/simulate.h"

namespace ringlet::app::report {

struct PipelineTimeline {
  std::vector<std::string> layers{};  ///< [p] "layer3 .. fc"; empty: not known
  train::Simulation step{};
  bool in_seconds = true;  ///< else costs, and the axis counts percent of the step
  std::string title{};     ///< read to those who cannot see it
};

/// How many passes a stage holds from a moment on.
struct HeldFrom {
  double seconds = 0;
  int passes = 0;
  bool operator==(const HeldFrom&) const = default;
};
/// From its forward until its backward is done and its gradient, where one leaves the stage, sent.
std::vector<HeldFrom> held_over_time(const train::Simulation& step, int stage);

/// The drawing, whose colours are those of the page (pipeline.css).
Html timeline_of(const PipelineTimeline& timeline);
Html timeline_legend();

/// The same as an SVG file that needs nothing else; for documents.
std::string pipeline_still(const PipelineTimeline& timeline);

}  // namespace ringlet::app::report
