// The page of `ringlet pipeline --out`: a step's timeline, simulated or of a real run, what it says
// in plain words, and the tables.
#pragma once

#include <optional>
#include <string>

#include "app/report/pipeline_timeline.h"
#include "train/forecast/forecast.h"

namespace ringlet::app::report {

/// `what`: "resnet18-cifar, 3 x 32 x 32, batch 128, f32, lanes, costs measured on cpu:0"; `memory`:
/// whether it fits, in words.
std::string pipeline_page(const train::Forecast& forecast, const std::string& what,
                          const std::string& memory);

/// The forecast's timeline, for a still.
PipelineTimeline timeline_of(const train::Forecast& forecast, const std::string& title);

}  // namespace ringlet::app::report
