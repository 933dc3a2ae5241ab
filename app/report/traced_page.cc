// The page of a traced run's step (pipeline_page.h).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/report/axis.h"
#include "app/report/page_texts.h"
#include "app/report/pipeline_page.h"
#include "train/recipe/version.h"

namespace ringlet::app::report {

namespace {

using train::Simulation;
using train::StageUse;
using train::TimelineSpan;

const Simulation& step_of(const TracedPipeline& run, int step) {
  return run.steps.at(static_cast<std::size_t>(step));
}

std::string ms_text(double seconds) {
  const double ms = 1e3 * seconds;
  return ms < 1000 ? with_digits(ms) : fmt::format("{:.0f}", ms);
}

/// The mean of a stage's passes of this kind; 0 where there are none.
double mean_of(const Simulation& step, int stage, TimelineSpan::Kind kind) {
  double seconds = 0;
  int count = 0;
  for (const TimelineSpan& span : step.timeline) {
    if (span.stage != stage || span.kind != kind) continue;
    seconds += span.end - span.begin;
    ++count;
  }
  return count > 0 ? seconds / count : 0;
}

/// The middle one of a number of each step, but for the warm-up's.
template <class Of>
double middle_of(const TracedPipeline& run, Of of) {
  std::vector<double> numbers;
  for (const Simulation& step : run.steps) numbers.push_back(of(step));
  constexpr std::size_t kWarmUp = 2;
  if (numbers.size() > kWarmUp) numbers.erase(numbers.begin(), numbers.begin() + kWarmUp);
  const auto middle = numbers.begin() + std::ssize(numbers) / 2;
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

std::string share_of(double seconds, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * seconds / whole) : "0 %";
}

std::string in_plain_words(const TracedPipeline& run, int step) {
  const Simulation& drawn = step_of(run, step);
  int waiter = 0;
  for (int stage = 0; stage < run.stages(); ++stage) {
    const auto waiting = [&](int of) { return drawn.stages[static_cast<std::size_t>(of)].waiting; };
    if (waiting(stage) > waiting(waiter)) waiter = stage;
  }
  return fmt::format(
      "In this step {} micro-batch{} went through {} stage{}. Stage {} waited most, {} of the "
      "step. Grey is waiting: for a neighbour, for data, or for what no action says. A "
      "message goes from when both its stages have come to it. The middle one of all "
      "steps{} takes {} ms, with a bubble of {:.0f}\u00a0%.",
      run.micro_batches, run.micro_batches == 1 ? "" : "es", run.stages(),
      run.stages() == 1 ? "" : "s", waiter,
      share_of(drawn.stages[static_cast<std::size_t>(waiter)].waiting, drawn.seconds),
      run.steps.size() > 2 ? " behind the first two" : "",
      ms_text(middle_of(run, [](const Simulation& one) { return one.seconds; })),
      100 * middle_of(run, [](const Simulation& one) { return one.bubble; }));
}

}  // namespace

train::StageTable traced_table(const TracedPipeline& run, int step) {
  const Simulation& drawn = step_of(run, step);
  train::StageTable table{.heads = {"stage", "rank", "ms F / B", "computing", "messages",
                                    "sum and update", "waiting", "held"}};
  for (int stage = 0; stage < run.stages(); ++stage) {
    const StageUse& use = drawn.stages[static_cast<std::size_t>(stage)];
    table.rows.push_back(
        {fmt::format("{}", stage), fmt::format("{}", run.ranks[static_cast<std::size_t>(stage)]),
         fmt::format("{} / {}", ms_text(mean_of(drawn, stage, TimelineSpan::Kind::forward)),
                     ms_text(mean_of(drawn, stage, TimelineSpan::Kind::backward))),
         share_of(use.busy, drawn.seconds), share_of(use.moving, drawn.seconds),
         share_of(use.syncing, drawn.seconds), share_of(use.waiting, drawn.seconds),
         fmt::format("{} of {}", use.peak_held, run.micro_batches)});
  }
  return table;
}

std::string in_words(const TracedPipeline& run, int step) {
  const Simulation& drawn = step_of(run, step);
  return fmt::format(
      "step {} of {}, {} micro-batch{}: {} ms, bubble {:.0f} %, {:.2f}x of one device; the middle "
      "of all steps: {} ms, bubble {:.0f} %",
      step, run.steps.size(), run.micro_batches, run.micro_batches == 1 ? "" : "es",
      ms_text(drawn.seconds), 100 * drawn.bubble, drawn.speedup,
      ms_text(middle_of(run, [](const Simulation& one) { return one.seconds; })),
      100 * middle_of(run, [](const Simulation& one) { return one.bubble; }));
}

PipelineTimeline timeline_of(const TracedPipeline& run, int step, const std::string& title) {
  PipelineTimeline timeline{.step = step_of(run, step), .title = title};
  for (const int rank : run.ranks) timeline.layers.push_back(fmt::format("rank {}", rank));
  return timeline;
}

std::string traced_page(const TracedPipeline& run, int step, const std::string& source) {
  const Simulation& drawn = step_of(run, step);
  const std::string title =
      fmt::format("{} stage{} of a run: a step of {} ms, {:.0f} % bubble", run.stages(),
                  run.stages() == 1 ? "" : "s", ms_text(drawn.seconds), 100 * drawn.bubble);
  Html body = markup(
      "<header>\n<p class=\"kicker\">ringlet pipeline</p>\n<h1>{}</h1>\n<p class=\"lede\">Step "
      "{} of {} in {}.</p>\n<dl class=\"facts\">\n",
      title, step, run.steps.size(), source);
  body += fact("Beside one device", markup("{:.2f} <small>times</small>", drawn.speedup));
  body += fact("Bubble", markup("{:.0f} <small>%</small>", 100 * drawn.bubble));
  body += fact("A step", markup("{} <small>ms</small>", ms_text(drawn.seconds)));
  body += fact("Stages", markup("{}", run.stages()));
  body += fact("Micro-batches", markup("{}", run.micro_batches));
  body += fact("Replicas", markup("{}", run.replicas));
  body += "</dl>\n</header>\n<h2>A step</h2>\n";
  body += timeline_legend() + timeline_of(timeline_of(run, step, title));
  print(body, "<p class=\"prose\">{}</p>\n<h2>The stages</h2>\n", in_plain_words(run, step));
  body += html_of(traced_table(run, step), "stages");
  print(body, "<footer>Made by ringlet {} pipeline.</footer>\n", train::kVersion);
  return page_of("A pipeline (Ringlet)", body, {.style = kPipelineStyle});
}

nlohmann::json to_json(const TracedPipeline& run, int step) {
  const Simulation& drawn = step_of(run, step);
  nlohmann::json json{{"replicas", run.replicas},
                      {"micro_batches", run.micro_batches},
                      {"step", step},
                      {"steps", nlohmann::json::array()},
                      {"stages", nlohmann::json::array()}};
  for (const Simulation& one : run.steps) {
    json["steps"].push_back(
        {{"seconds", one.seconds}, {"bubble", one.bubble}, {"speedup", one.speedup}});
  }
  for (int stage = 0; stage < run.stages(); ++stage) {
    const StageUse& use = drawn.stages[static_cast<std::size_t>(stage)];
    json["stages"].push_back(
        {{"stage", stage},
         {"rank", run.ranks[static_cast<std::size_t>(stage)]},
         {"forward_seconds", mean_of(drawn, stage, TimelineSpan::Kind::forward)},
         {"backward_seconds", mean_of(drawn, stage, TimelineSpan::Kind::backward)},
         {"busy_seconds", use.busy},
         {"moving_seconds", use.moving},
         {"syncing_seconds", use.syncing},
         {"waiting_seconds", use.waiting},
         {"held", use.peak_held}});
  }
  return json;
}

}  // namespace ringlet::app::report
