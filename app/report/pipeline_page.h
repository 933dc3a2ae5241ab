// The page of `ringlet pipeline --out`: a step's timeline, simulated or of a real run, what it says
// in plain words, and the tables.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "app/report/pipeline_timeline.h"
#include "app/report/traced_pipeline.h"
#include "train/forecast/forecast.h"

namespace ringlet::app::report {

/// `what`: "resnet18-cifar, 3 x 32 x 32, batch 128, f32, lanes, costs measured on cpu:0"; `memory`:
/// whether it fits, in words.
std::string pipeline_page(const train::Forecast& forecast, const std::string& what,
                          const std::string& memory);

/// A table of the page, with this id.
Html html_of(const train::StageTable& table, const char* id);

/// What each stage did in a step of a run.
train::StageTable traced_table(const TracedPipeline& run, int step);
/// "step 5 of 20: 123 ms, bubble 13 %, 1.74x of one device; all steps but the first two: ..."
std::string in_words(const TracedPipeline& run, int step);
/// The page of that step; `source`: the trace's name.
std::string traced_page(const TracedPipeline& run, int step, const std::string& source);
PipelineTimeline timeline_of(const TracedPipeline& run, int step, const std::string& title);
nlohmann::json to_json(const TracedPipeline& run, int step);

/// The forecast's timeline, for a still.
PipelineTimeline timeline_of(const train::Forecast& forecast, const std::string& title);

}  // namespace ringlet::app::report
