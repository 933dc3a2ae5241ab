#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "app/report/sections.h"
#include "app/report/svg_plot.h"

namespace ringlet::app::report {

namespace {

using train::EpochMetrics;
using train::StageShares;
using train::StagesReport;

/// What a stage's time went to, in the order of the bars.
struct Share {
  const char* name;
  int color;
  double StageShares::*part;
};
constexpr std::array<Share, 5> kShares{{{"forward and backward", 0, &StageShares::busy},
                                        {"waiting for the stage before", 4, &StageShares::before},
                                        {"waiting for the next stage", 1, &StageShares::behind},
                                        {"waiting for samples", 3, &StageShares::data},
                                        {"waiting for sums", 2, &StageShares::sums}}};
constexpr int kRestColor = 7;

bool has_stages(const RunFolder& run) {
  return std::any_of(run.metrics.epochs.begin(), run.metrics.epochs.end(),
                     [](const EpochMetrics& epoch) { return epoch.stages.has_value(); });
}

double rest_of(const StageShares& shares) {
  double rest = 1;
  for (const Share& share : kShares) rest -= shares.*share.part;
  return std::max(0.0, rest);
}

/// The mean of the epochs, each by its seconds. Epochs whose stages are told by another number of
/// them, or not at all, do not count.
std::vector<StageShares> mean_of(const RunFolder& run) {
  std::vector<StageShares> mean;
  double all = 0;
  for (const EpochMetrics& epoch : run.metrics.epochs) {
    if (!epoch.stages || epoch.stages->stages.empty() || !(epoch.seconds > 0)) continue;
    const std::vector<StageShares>& stages = epoch.stages->stages;
    if (mean.empty()) mean.resize(stages.size());
    if (mean.size() != stages.size()) continue;
    all += epoch.seconds;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      for (const Share& share : kShares)
        mean[i].*share.part += epoch.seconds * stages[i].*share.part;
    }
  }
  for (StageShares& shares : mean) {
    for (const Share& share : kShares) shares.*share.part /= all;
  }
  return mean;
}

Curve bubbles_of(const RunFolder& run, double StagesReport::*field) {
  Curve curve;
  for (const EpochMetrics& epoch : run.metrics.epochs) {
    if (epoch.stages) curve.add(static_cast<double>(epoch.epoch), *epoch.stages.*field);
  }
  return curve;
}

Plot bubble_of(const std::vector<RunFolder>& runs) {
  const bool alone = runs.size() == 1;
  Plot plot{"bubble", "Bubble", alone ? "" : "measured; dashed: predicted", {}, {}, {}};
  plot.x.title = "epoch";
  plot.x.whole = true;
  plot.y.percent = true;
  plot.y.round = true;
  plot.y.include_low = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!has_stages(runs[i])) continue;
    const int color = color_of(runs, i);
    const std::string& name = runs[i].name;
    plot.series.push_back({.name = alone ? "predicted" : name + ", predicted",
                           .curve = bubbles_of(runs[i], &StagesReport::predicted),
                           .color = alone ? kBaseline : color,
                           .look = Look::dashed,
                           .named = alone});
    plot.series.push_back({.name = alone ? "measured" : name,
                           .curve = bubbles_of(runs[i], &StagesReport::bubble),
                           .color = color,
                           .look = Look::dotted_line});
  }
  return plot;
}

StackedBars stage_bars(const std::vector<StageShares>& stages, const std::string& id,
                       const std::string& run) {
  StackedBars bars{.id = id,
                   .title = "What each stage did" + (run.empty() ? run : ": " + run),
                   .note = "of its time, in the mean of all epochs",
                   .x_title = "stage",
                   .y = {},
                   .labels = {},
                   .parts = {}};
  bars.y.percent = true;
  for (const Share& share : kShares) bars.parts.push_back({share.name, share.color, {}});
  bars.parts.push_back({"update and the rest", kRestColor, {}});
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    bars.labels.push_back(fmt::format("{}", stage));
    for (std::size_t i = 0; i < kShares.size(); ++i) {
      bars.parts[i].values.push_back(stages[stage].*kShares[i].part);
    }
    bars.parts.back().values.push_back(rest_of(stages[stage]));
  }
  return bars;
}

double waits_in(const StageShares& shares) {
  return shares.before + shares.behind + shares.data + shares.sums;
}

/// "stage 0, 62 %"; what the stage waited for most.
std::string longest_wait(const StageShares& shares, std::size_t stage) {
  const std::array<std::pair<double, std::string>, 4> waits{
      {{shares.before, fmt::format("stage {}", static_cast<std::int64_t>(stage) - 1)},
       {shares.behind, fmt::format("stage {}", stage + 1)},
       {shares.data, "samples"},
       {shares.sums, "sums"}}};
  const auto& longest = *std::max_element(
      waits.begin(), waits.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return longest.first > 0 ? fmt::format("{}, {:.0f} %", longest.second, 100 * longest.first) : "";
}

/// A row a stage.
Html stage_rows(const RunFolder& run, const std::vector<StageShares>& stages,
                const std::string& id) {
  const std::vector<RunFacts::Stage> facts =
      run.facts ? run.facts->stages() : std::vector<RunFacts::Stage>();
  Html html = markup(
      "<div class=\"scroll\"><table class=\"wide stages\" id=\"{}\"><thead><tr><th>stage</th>"
      "<th class=\"text\">layers</th><th class=\"text\">device</th><th>works</th><th>waits</th>"
      "<th class=\"text\">most for</th></tr></thead>"
      "<tbody>\n",
      id);
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const StageShares& shares = stages[stage];
    const RunFacts::Stage fact = stage < facts.size() ? facts[stage] : RunFacts::Stage();
    html += markup(
        "<tr><td>{}</td><td class=\"text\">{}</td><td class=\"text\">{}</td><td>{:.0f} %</td>"
        "<td>{:.0f} %</td><td class=\"text\">{}</td></tr>\n",
        stage, fact.layers, fact.device, 100 * shares.busy, 100 * waits_in(shares),
        longest_wait(shares, stage));
  }
  return html + "</tbody></table></div>\n";
}

/// "Stage 0 waited most: 95 % of its time, most of all for stage 1, 89 %."
std::string who_waited(const std::vector<StageShares>& stages) {
  const auto most = std::max_element(
      stages.begin(), stages.end(),
      [](const StageShares& a, const StageShares& b) { return waits_in(a) < waits_in(b); });
  const auto stage = static_cast<std::size_t>(most - stages.begin());
  return fmt::format("Stage {} waited most: {:.0f}\u00a0% of its time, most of all for {}.", stage,
                     100 * waits_in(*most), longest_wait(*most, stage));
}

/// A row an epoch: who waited most, and for whom.
Html epoch_rows(const RunFolder& run, const std::string& id) {
  Html html = markup(
      "<div class=\"scroll\"><table class=\"wide stages\" "
      "id=\"{}\"><thead><tr><th>epoch</th><th>bubble</th><th>predicted</th>"
      "<th class=\"text\">waited most</th>"
      "<th>of its time</th><th class=\"text\">most for</th></tr></thead><tbody>\n",
      id);
  for (const EpochMetrics& epoch : run.metrics.epochs) {
    if (!epoch.stages) continue;
    const StagesReport& stages = *epoch.stages;
    html += markup(
        "<tr><td>{}</td><td>{:.0f} %</td><td>{:.0f} %</td><td class=\"text\">stage {}</td>"
        "<td>{:.0f} %</td><td class=\"text\">{}, {:.0f} %</td></tr>\n",
        epoch.epoch, 100 * stages.bubble, 100 * stages.predicted, stages.stage, 100 * stages.waited,
        stages.reason, 100 * stages.of_reason);
  }
  return folded("By epoch", html + "</tbody></table></div>\n");
}

}  // namespace

Html stages_section(const std::vector<RunFolder>& runs) {
  if (std::none_of(runs.begin(), runs.end(), has_stages)) return "";
  Html html =
      "<h2>Stages</h2>\n<p class=\"note\">The bubble is the part of all stages&rsquo; time in "
      "which no forward and no backward runs. Updates, samples and reports are in the measured "
      "one.</p>\n<div class=\"grid\">\n";
  html += figure_of(bubble_of(runs));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!has_stages(runs[i])) continue;
    const std::string end = i == 0 ? "" : fmt::format("-{}", i + 1);
    html += figure_of(
        stage_bars(mean_of(runs[i]), "stage-time" + end, runs.size() > 1 ? runs[i].name : ""));
  }
  html += "</div>\n";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!has_stages(runs[i])) continue;
    const std::string end = i == 0 ? "" : fmt::format("-{}", i + 1);
    if (runs.size() > 1) html += markup("<h3>{}</h3>\n", runs[i].name);
    const std::vector<StageShares> mean = mean_of(runs[i]);
    if (!mean.empty()) {
      html += markup("<p class=\"note\">{}</p>\n", who_waited(mean));
      html += stage_rows(runs[i], mean, "stages" + end);
    }
    html += epoch_rows(runs[i], "bubbles" + end);
  }
  return html;
}

}  // namespace ringlet::app::report
