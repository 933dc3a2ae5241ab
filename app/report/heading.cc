#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/report/html.h"
#include "app/report/run_result.h"
#include "app/report/sections.h"
#include "train/telemetry/console.h"

namespace ringlet::app::report {

namespace {

using train::EpochMetrics;
using train::with_commas;

/// The number with what follows it in small; a dash where there is none.
std::string shown(double value, const char* format, double factor = 1) {
  if (!std::isfinite(value)) return "&ndash;";
  return fmt::format(fmt::runtime(format), factor * value);
}

struct Duration {
  std::string number, unit;
};

Duration duration_of(double seconds) {
  if (seconds < 100) return {fmt::format("{:.1f}", seconds), "s"};
  const auto whole = std::int64_t{std::llround(seconds)};
  if (whole < 3600) return {fmt::format("{}:{:02}", whole / 60, whole % 60), "min"};
  return {fmt::format("{}:{:02}", whole / 3600, whole / 60 % 60), "h"};
}

std::string seconds_in_words(double seconds) {
  if (!std::isfinite(seconds)) return "&ndash;";
  const Duration duration = duration_of(seconds);
  return fmt::format("{} <small>{}</small>", duration.number, duration.unit);
}

std::string fact(const char* name, const std::string& value) {
  return fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", name, value);
}

std::string facts_of(const RunResult& result) {
  std::string html = "<dl class=\"facts\">\n";
  html += fact("Test accuracy", shown(result.test_accuracy, "{:.2f} <small>%</small>", 100));
  html += fact("Test loss", shown(result.test_loss, "{:.4f}"));
  html += fact("Training loss", shown(result.train_loss, "{:.4f}"));
  html += fact("Training time", seconds_in_words(result.seconds));
  html += fact("Samples a second", std::isfinite(result.speed)
                                       ? train::with_commas(std::llround(result.speed))
                                       : "&ndash;");
  html += fact("In synchronisation", shown(result.sync_share, "{:.1f} <small>%</small>", 100));
  return html + "</dl>\n";
}

/// "6 epochs", "stopped after step 900 of 2,814, 1 of 6 epochs done"
std::string state_of(const RunFacts& facts, const RunResult& result) {
  if (!std::isfinite(facts.planned_steps) || !std::isfinite(facts.epochs)) {
    return train::with_commas(result.steps) + " steps";
  }
  const auto planned = static_cast<std::int64_t>(facts.planned_steps);
  const auto epochs = static_cast<std::int64_t>(facts.epochs);
  if (result.steps >= planned) return fmt::format("{} epoch{}", epochs, epochs == 1 ? "" : "s");
  const std::int64_t whole = result.steps * epochs / planned;
  return fmt::format("stopped after step {} of {}, {} of {} epochs done",
                     train::with_commas(result.steps), train::with_commas(planned), whole, epochs);
}

/// "129,068 parameters, 6 epochs, 128 samples a step over 2 replicas on AMD EPYC."
std::string lede_of(const RunFolder& run, const RunResult& result) {
  const RunFacts facts = run.facts.value_or(RunFacts());
  std::string text;
  if (std::isfinite(facts.parameters)) {
    text += train::with_commas(std::llround(facts.parameters)) + " parameters, ";
  }
  text += state_of(facts, result);
  if (std::isfinite(facts.replicas)) {
    text += fmt::format(", {} samples a step over {:.0f} replica{}",
                        train::with_commas(std::llround(facts.batch)), facts.replicas,
                        facts.replicas == 1 ? "" : "s");
  }
  const std::string& device = facts.gpus.empty() ? facts.processor : facts.gpus;
  if (!device.empty()) text += " on " + device;
  constexpr std::size_t kDate = 10;  // "2026-11-21"
  if (facts.started.size() >= kDate) text += ", started " + facts.started.substr(0, kDate);
  return text + ".";
}

std::string table_of(const std::vector<RunFolder>& runs) {
  std::string html =
      "<div class=\"scroll\"><table class=\"wide\" id=\"runs\"><thead><tr>"
      "<th>run</th><th>test accuracy</th><th>best (epoch)</th><th>test loss</th>"
      "<th>training loss</th><th>time</th><th>samples/s</th><th>in sync</th></tr></thead><tbody>\n";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunResult result = result_of(runs[i]);
    html += fmt::format(
        "<tr><td><i class=\"swatch c{}\"></i>{}</td><td>{}</td><td>{} "
        "({})</td><td>{}</td><td>{}</td>"
        "<td>{}</td><td>{}</td><td>{}</td></tr>\n",
        color_of(runs, i), escaped(runs[i].name), shown(result.test_accuracy, "{:.2f} %", 100),
        shown(result.best_accuracy, "{:.2f} %", 100), result.best_epoch,
        shown(result.test_loss, "{:.4f}"), shown(result.train_loss, "{:.4f}"),
        seconds_in_words(result.seconds),
        std::isfinite(result.speed) ? train::with_commas(std::llround(result.speed)) : "&ndash;",
        shown(result.sync_share, "{:.1f} %", 100));
  }
  return html + "</tbody></table></div>\n";
}

/// "91.3 % in 23.4 s"; no line ends between a number and its unit.
std::string outcome_of(const RunResult& result) {
  if (!std::isfinite(result.test_accuracy)) return "not tested yet";
  const Duration duration = duration_of(result.seconds);
  return fmt::format("{:.1f}\u00a0% in {}\u00a0{}", 100 * result.test_accuracy, duration.number,
                     duration.unit);
}

/// What all have in common, or "several".
template <class Of>
std::string common(const std::vector<RunFolder>& runs, const char* several, Of of) {
  const std::string first = of(runs.front());
  const bool same =
      std::all_of(runs.begin(), runs.end(), [&](const RunFolder& run) { return of(run) == first; });
  return same ? first : several;
}

}  // namespace

std::string title_of(const std::vector<RunFolder>& runs) {
  return common(runs, "several models", [](const RunFolder& run) { return run.model_name(); }) +
         " on " +
         common(runs, "several data sets", [](const RunFolder& run) { return run.data_name(); });
}

std::string answer_of(const std::vector<RunFolder>& runs) {
  const std::string title = title_of(runs);
  const RunFolder &first = runs.front(), &best = runs[best_run(runs)];
  if (runs.size() == 1) return title + ": " + outcome_of(result_of(first));
  const bool same_data = std::all_of(runs.begin(), runs.end(), [&](const RunFolder& run) {
    return run.data_name() == first.data_name();
  });
  if (!same_data || !std::isfinite(result_of(best).test_accuracy)) return title;
  std::string text =
      fmt::format("{}: {} is best, {}", title, best.name, outcome_of(result_of(best)));
  if (&best != &first) text += fmt::format("; {}, {}", first.name, outcome_of(result_of(first)));
  return text;
}

std::string heading(const std::vector<RunFolder>& runs) {
  std::string html = "<header>\n";
  if (runs.size() == 1) {
    const RunResult result = result_of(runs.front());
    html += fmt::format(
        "<p class=\"kicker\">Training run {}</p>\n<h1>{}</h1>\n<p class=\"lede\">{}</p>\n",
        escaped(runs.front().name), escaped(answer_of(runs)),
        escaped(lede_of(runs.front(), result)));
    html += facts_of(result);
  } else {
    html += fmt::format("<p class=\"kicker\">{} training runs</p>\n<h1>{}</h1>\n", runs.size(),
                        escaped(answer_of(runs)));
    for (const RunFolder& run : runs) {
      html += fmt::format("<p class=\"note\"><b>{}</b>: {}</p>\n", escaped(run.name),
                          escaped(lede_of(run, result_of(run))));
    }
    html += table_of(runs);
  }
  for (const RunFolder& run : runs) {
    for (const std::string& note : run.notes) {
      html += "<p class=\"warning\">" + escaped(note) + "</p>\n";
    }
  }
  return html + "</header>\n";
}

}  // namespace ringlet::app::report
