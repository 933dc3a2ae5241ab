#include "train/reports/stages_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/error.h"

namespace ringlet::train {

namespace {

/// What a stage waited for, and for how long.
using Wait = std::pair<double, std::string>;

std::vector<Wait> waits_of(const StageSeconds& seconds, int stage) {
  return {{seconds.before, fmt::format("stage {}", stage - 1)},
          {seconds.behind, fmt::format("stage {}", stage + 1)},
          {seconds.data, "samples"},
          {seconds.sums, "sums"}};
}

double waited_in(const StageSeconds& seconds) {
  return seconds.before + seconds.behind + seconds.data + seconds.sums;
}

}  // namespace

std::string to_text(const StageSeconds& seconds) {
  return fmt::format("{} {} {} {} {} {}", seconds.all, seconds.busy, seconds.data, seconds.before,
                     seconds.behind, seconds.sums);
}

StageSeconds stage_seconds_of(const std::string& text) {
  std::istringstream words(text);
  StageSeconds seconds;
  words >> seconds.all >> seconds.busy >> seconds.data >> seconds.before >> seconds.behind >>
      seconds.sums;
  require(!words.fail(), "stage_seconds_of", "the text has six numbers");
  return seconds;
}

StagesReport report_of(const std::vector<StageSeconds>& ranks, int stages, double predicted) {
  const bool took_time = std::all_of(ranks.begin(), ranks.end(),
                                     [](const StageSeconds& rank) { return rank.all > 0; });
  require(stages > 0 && !ranks.empty() && std::ssize(ranks) % stages == 0 && took_time, "report_of",
          "each stage has as many ranks, and the epoch took some time");
  const int replicas = static_cast<int>(std::ssize(ranks)) / stages;
  StagesReport report{.predicted = predicted};
  double busy = 0, all = 0;
  for (int stage = 0; stage < stages; ++stage) {
    StageSeconds mean;
    for (int replica = 0; replica < replicas; ++replica) {
      const StageSeconds& own = ranks[static_cast<std::size_t>(stage * replicas + replica)];
      mean.all += own.all / replicas;
      mean.busy += own.busy / replicas;
      mean.data += own.data / replicas;
      mean.before += own.before / replicas;
      mean.behind += own.behind / replicas;
      mean.sums += own.sums / replicas;
    }
    busy += mean.busy;
    all += mean.all;
    report.stages.push_back({mean.busy / mean.all, mean.data / mean.all, mean.before / mean.all,
                             mean.behind / mean.all, mean.sums / mean.all});
    const double waited = waited_in(mean) / mean.all;
    if (stage > 0 && waited <= report.waited) continue;
    const std::vector<Wait> waits = waits_of(mean, stage);
    const Wait& longest = *std::max_element(
        waits.begin(), waits.end(), [](const Wait& a, const Wait& b) { return a.first < b.first; });
    report.stage = stage;
    report.waited = waited;
    report.reason = longest.second;
    report.of_reason = longest.first / mean.all;
  }
  report.bubble = 1 - busy / all;
  return report;
}

std::string in_words(const StagesReport& report) {
  std::string step;
  if (report.step_seconds > 0) step = fmt::format("step {:.1f} ms", 1e3 * report.step_seconds);
  if (report.predicted_step_seconds > 0) {
    step += fmt::format(" (predicted {:.1f} ms)", 1e3 * report.predicted_step_seconds);
  }
  return fmt::format(
      "{}{}bubble {:.0f} % (predicted {:.0f} %), stage {} waited most: {:.0f} % of the time, "
      "{:.0f} % for {}",
      step, step.empty() ? "" : ", ", 100 * report.bubble, 100 * report.predicted, report.stage,
      100 * report.waited, 100 * report.of_reason, report.reason);
}

}  // namespace ringlet::train
