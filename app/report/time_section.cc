#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "app/report/sections.h"
#include "app/report/svg_plot.h"

namespace ringlet::app::report {

namespace {

using train::EpochMetrics;
using train::PhaseSeconds;

struct Phase {
  const char* name;
  int color;
  double train::PhaseSeconds::*seconds;
};

constexpr std::array<Phase, 5> kPhases{{{"forward", 0, &train::PhaseSeconds::forward},
                                        {"backward", 5, &train::PhaseSeconds::backward},
                                        {"synchronisation", 1, &train::PhaseSeconds::sync},
                                        {"update", 2, &train::PhaseSeconds::update},
                                        {"waiting for data", 4, &train::PhaseSeconds::data}}};
constexpr int kOtherColor = 7;

/// Seconds of a bar: those of one epoch, or of all of a run's.
struct Bar {
  std::string label;
  train::PhaseSeconds phases;
  double seconds = 0;
};

void add(Bar& bar, const train::EpochMetrics& epoch) {
  if (!std::isfinite(epoch.phases.total())) return;  // metrics of an older version have none
  for (const Phase& phase : kPhases) bar.phases.*phase.seconds += epoch.phases.*phase.seconds;
  bar.seconds += epoch.seconds;
}

/// How many epochs of a run share a bar: as few as leave bars that can be seen.
std::size_t epochs_of_bar(const RunFolder& run) {
  constexpr std::size_t kMostBars = 200;
  return (run.metrics.epochs.size() + kMostBars - 1) / kMostBars;
}

/// The means of a bar's epochs.
std::vector<Bar> bars_by_epoch(const RunFolder& run) {
  const auto& epochs = run.metrics.epochs;
  const std::size_t each = epochs_of_bar(run);
  std::vector<Bar> bars;
  for (std::size_t begin = 0; begin < epochs.size(); begin += each) {
    const std::size_t end = std::min(begin + each, epochs.size());
    Bar& bar = bars.emplace_back(Bar{fmt::format("{}", epochs[begin].epoch), {}, 0});
    for (std::size_t i = begin; i < end; ++i) add(bar, epochs[i]);
    const auto count = static_cast<double>(end - begin);
    for (const Phase& phase : kPhases) bar.phases.*phase.seconds /= count;
    bar.seconds /= count;
  }
  return bars;
}

std::vector<Bar> bars_by_run(const std::vector<RunFolder>& runs) {
  std::vector<Bar> bars;
  for (const RunFolder& run : runs) {
    Bar& bar = bars.emplace_back(Bar{run.name, {}, 0});
    for (const train::EpochMetrics& epoch : run.metrics.epochs) add(bar, epoch);
  }
  return bars;
}

StackedBars figure_from(const std::vector<Bar>& bars, bool by_epoch) {
  StackedBars figure{
      .id = "time",
      .title = by_epoch ? "Seconds of training by epoch" : "Seconds of training by run",
      .note = "of rank 0, without evaluation",
      .x_title = by_epoch ? "epoch" : "",
      .y = {},
      .labels = {},
      .parts = {}};
  for (const Phase& phase : kPhases) figure.parts.push_back({phase.name, phase.color, {}});
  figure.parts.push_back({"other", kOtherColor, {}});
  for (const Bar& bar : bars) {
    figure.labels.push_back(bar.label);
    for (std::size_t i = 0; i < kPhases.size(); ++i) {
      figure.parts[i].values.push_back(bar.phases.*kPhases[i].seconds);
    }
    figure.parts.back().values.push_back(std::max(0.0, bar.seconds - bar.phases.total()));
  }
  return figure;
}

/// "12.34 s", "1.23 ms"
std::string time_text(double seconds) {
  const bool is_short = seconds > 0 && seconds < 0.1;
  return is_short ? with_digits(1000 * seconds) + " ms" : with_decimals(seconds, 2) + " s";
}

/// A row a phase, a column a run.
Html time_table_of(const std::vector<RunFolder>& runs) {
  const std::vector<Bar> wholes = bars_by_run(runs);
  const auto cell = [](double seconds, double all) {
    return all > 0 ? markup("<td>{}</td><td>{:.1f} %</td>", time_text(seconds), 100 * seconds / all)
                   : Html("<td></td><td></td>");
  };
  Html html = "<div class=\"scroll\"><table><thead><tr><th>phase</th>";
  for (const Bar& whole : wholes) {
    html += markup("<th colspan=\"2\">{}</th>", runs.size() > 1 ? whole.label : "all epochs");
  }
  html += "</tr></thead><tbody>\n";
  for (const Phase& phase : kPhases) {
    html += markup("<tr><td><i class=\"swatch c{}\"></i>{}</td>", phase.color, phase.name);
    for (const Bar& whole : wholes) html += cell(whole.phases.*phase.seconds, whole.seconds);
    html += "</tr>\n";
  }
  html += markup("<tr><td><i class=\"swatch c{}\"></i>other</td>", kOtherColor);
  for (const Bar& whole : wholes)
    html += cell(std::max(0.0, whole.seconds - whole.phases.total()), whole.seconds);
  html += "</tr>\n<tr><td>all</td>";
  for (const Bar& whole : wholes) html += cell(whole.seconds, whole.seconds);
  return html + "</tr></tbody></table></div>\n";
}

bool on_gpu(const RunFolder& run) { return run.facts && !run.facts->gpus().empty(); }

}  // namespace

Html time_section(const std::vector<RunFolder>& runs) {
  Html html = "<h2>Time</h2>\n";
  if (std::any_of(runs.begin(), runs.end(), on_gpu)) {
    html +=
        "<p class=\"note\">On a GPU these are the seconds of the thread that launches the work, "
        "which runs ahead of it and waits for it under &ldquo;other&rdquo;.</p>\n";
  }
  const bool alone = runs.size() == 1;
  StackedBars figure = figure_from(alone ? bars_by_epoch(runs.front()) : bars_by_run(runs), alone);
  if (const std::size_t each = epochs_of_bar(runs.front()); alone && each > 1) {
    figure.note += fmt::format("; a bar is the mean of {} epochs", each);
  }
  html += "<div class=\"side\">\n" + figure_of(figure);
  return html + "<div>" + time_table_of(runs) + "</div>\n</div>\n";
}

}  // namespace ringlet::app::report
