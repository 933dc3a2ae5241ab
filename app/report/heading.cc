#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "app/report/axis.h"
#include "app/report/html.h"
#include "app/report/run_folder.h"
#include "app/report/sections.h"
#include "train/telemetry/console.h"

namespace ringlet::app::report {

namespace {

using train::with_commas;

/// The number's HTML; a dash alone where there is no number.
Html or_dash(double value, const Html& html) {
  return std::isfinite(value) ? html : Html("&ndash;");
}

/// Whether it can be shown as a whole number.
bool is_countable(double value) { return std::abs(value) < 1e15; }

struct Duration {
  std::string number, unit;
};

Duration duration_of(double seconds) {
  if (seconds < 100 || !is_countable(seconds)) return {fmt::format("{:.1f}", seconds), "s"};
  const auto whole = std::int64_t{std::llround(seconds)};
  if (whole < 3600) return {fmt::format("{}:{:02}", whole / 60, whole % 60), "min"};
  return {fmt::format("{}:{:02}", whole / 3600, whole / 60 % 60), "h"};
}

Html seconds_in_words(double seconds) {
  if (!std::isfinite(seconds)) return "&ndash;";
  const Duration duration = duration_of(seconds);
  return markup("{} <small>{}</small>", duration.number, duration.unit);
}

/// A speed; a dash where it is not known.
std::string per_second(double speed) {
  return is_countable(speed) ? with_commas(std::llround(speed)) : "\u2013";
}

Html share_html(double share) { return markup("{} <small>%</small>", share_text(share, 2)); }

/// "mean_error" as "mean error".
std::string words_of(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

/// Of a run that has not ended the accuracy is that of an epoch, and the best one may be the same.
Html facts_of(const RunFolder& run, const RunResult& result) {
  Html html = "<dl class=\"facts\">\n";
  const bool goes_on = !run.finished && result.epoch > 0;
  if (std::isfinite(result.test_accuracy) || result.test_figures.empty()) {
    html += fact(goes_on ? fmt::format("Test accuracy, epoch {}", result.epoch) : "Test accuracy",
                 or_dash(result.test_accuracy, share_html(result.test_accuracy)));
  }
  if (result.best_epoch > 0 && !(goes_on && result.best_epoch == result.epoch)) {
    html += fact(fmt::format("Best accuracy, epoch {}", result.best_epoch),
                 share_html(result.best_accuracy));
  }
  for (const auto& [name, value] : result.test_figures) {
    html += fact(fmt::format("Test {}", words_of(name)), escaped(with_digits(value, 4)));
  }
  html += fact("Test loss", escaped(loss_text(result.test_loss)));
  html += fact("Training loss", escaped(loss_text(result.train_loss)));
  html += fact("Training time", seconds_in_words(result.seconds));
  html += fact("Samples a second", escaped(per_second(result.speed)));
  html +=
      fact("In synchronisation",
           or_dash(result.sync_share, markup("{:.1f} <small>%</small>", 100 * result.sync_share)));
  return html + "</dl>\n";
}

/// "6 epochs", "stopped after step 900 of 2,814, 1 of 6 epochs done"; "at step 900" where it may go
/// on.
std::string state_of(const RunFacts& facts, const RunResult& result, bool goes_on) {
  const double planned_steps = facts.number("/run/planned_steps");
  const double planned_epochs = facts.number("/run/epochs");
  if (!std::isfinite(planned_steps) || !std::isfinite(planned_epochs)) {
    return train::with_commas(result.steps) + " steps";
  }
  const auto planned = static_cast<std::int64_t>(planned_steps);
  const auto epochs = static_cast<std::int64_t>(planned_epochs);
  if (result.steps >= planned) return fmt::format("{} epoch{}", epochs, epochs == 1 ? "" : "s");
  const std::int64_t whole = result.steps * epochs / planned;
  return fmt::format("{} step {} of {}, {} of {} epochs done", goes_on ? "at" : "stopped after",
                     train::with_commas(result.steps), train::with_commas(planned), whole, epochs);
}

/// "129,068 parameters, 6 epochs, 128 samples a step over 2 replicas on AMD EPYC."
std::string lede_of(const RunFolder& run, const RunResult& result, bool goes_on) {
  const RunFacts facts = run.facts.value_or(RunFacts());
  std::string text;
  const double parameters = facts.number("/model/parameters");
  if (std::isfinite(parameters)) {
    text += train::with_commas(std::llround(parameters)) + " parameters, ";
  }
  text += state_of(facts, result, goes_on && !run.finished);
  if (std::isfinite(facts.replicas())) {
    text += fmt::format(", {} samples a step over {:.0f} replica{}",
                        train::with_commas(std::llround(facts.batch())), facts.replicas(),
                        facts.replicas() == 1 ? "" : "s");
  }
  const std::string gpus = facts.gpus();
  const std::string device = gpus.empty() ? facts.text("/machine/cpu/name") : gpus;
  if (!device.empty()) text += " on " + device;
  constexpr std::size_t kDate = 10;  // "2026-11-21"
  const std::string started = facts.text("/started");
  if (started.size() >= kDate) text += ", started " + started.substr(0, kDate);
  return text + ".";
}

Html percent_or_dash(double share, int digits) {
  return or_dash(share, markup("{} %", share_text(share, digits)));
}

Html best_of(const RunResult& result) {
  if (result.best_epoch == 0) return "&ndash;";
  return markup("{} ({})", percent_or_dash(result.best_accuracy, 2), result.best_epoch);
}

Html table_of(const std::vector<RunFolder>& runs) {
  Html html =
      "<div class=\"scroll\"><table class=\"wide\" id=\"runs\"><thead><tr>"
      "<th>run</th><th>test accuracy</th><th>best (epoch)</th><th>test loss</th>"
      "<th>training loss</th><th>time</th><th>samples/s</th><th>in sync</th></tr></thead><tbody>\n";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunResult result = result_of(runs[i]);
    html += markup(
        "<tr><td><i class=\"swatch c{}\"></i>{}</td><td>{}</td><td>{}</td>"
        "<td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        color_of(runs, i), runs[i].name, percent_or_dash(result.test_accuracy, 2), best_of(result),
        loss_text(result.test_loss), loss_text(result.train_loss), seconds_in_words(result.seconds),
        per_second(result.speed), percent_or_dash(result.sync_share, 1));
  }
  return html + "</tbody></table></div>\n";
}

/// "91.3 % in 23.4 s", of a run that has not ended "91.3 % after epoch 2, in 23.4 s"; no line ends
/// between a number and its unit.
std::string outcome_of(const RunFolder& run, int decimals = 1) {
  const RunResult result = result_of(run);
  const Duration duration = duration_of(result.seconds);
  if (!std::isfinite(result.test_accuracy)) {
    if (result.test_figures.empty()) return run.finished ? "not tested" : "not tested yet";
    const auto& [name, value] = *result.test_figures.begin();
    return fmt::format("{}\u00a0{}{} in {}\u00a0{}", words_of(name), with_digits(value, 4),
                       run.finished ? "" : fmt::format(" after epoch {},", result.epoch),
                       duration.number, duration.unit);
  }
  const std::string when = run.finished ? "" : fmt::format(" after epoch {},", result.epoch);
  return fmt::format("{}\u00a0%{} in {}\u00a0{}", share_text(result.test_accuracy, decimals), when,
                     duration.number, duration.unit);
}

/// The decimals that tell two shares apart.
int decimals_between(double a, double b) {
  constexpr int kMost = 6;
  int decimals = 1;
  while (a != b && decimals < kMost && share_text(a, decimals) == share_text(b, decimals)) {
    ++decimals;
  }
  return decimals;
}

/// "The loss is no number in 501 of 1,000 steps, first in step 500"; "" where it always is one.
std::string lost_steps(const RunFolder& run) {
  const train::StepColumns& steps = run.metrics.steps;
  const auto lost = std::ranges::count_if(steps.loss, [](double y) { return !std::isfinite(y); });
  if (lost == 0) return "";
  const auto first = std::ranges::find_if(steps.loss, [](double y) { return !std::isfinite(y); }) -
                     steps.loss.begin();
  return fmt::format("The loss is no number in {} of {} steps, first in step {}", with_commas(lost),
                     with_commas(std::ssize(steps.loss)),
                     with_commas(steps.step[static_cast<std::size_t>(first)]));
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
  std::string title = title_of(runs);
  const RunFolder &first = runs.front(), &best = runs[best_run(runs)];
  if (runs.size() == 1) return title + ": " + outcome_of(first);
  const bool same_data = std::all_of(runs.begin(), runs.end(), [&](const RunFolder& run) {
    return run.data_name() == first.data_name();
  });
  if (!same_data || !std::isfinite(result_of(best).test_accuracy)) return title;
  const double highest = result_of(best).test_accuracy, of_first = result_of(first).test_accuracy;
  std::vector<std::string> equals;
  for (const RunFolder& run : runs) {
    if (result_of(run).test_accuracy == highest) equals.push_back(run.name);
  }
  if (equals.size() == runs.size()) {
    const std::string who = runs.size() == 2 ? "both" : fmt::format("all {}", runs.size());
    return fmt::format("{}: {} runs come to {}\u00a0%", title, who, share_text(highest, 1));
  }
  const int decimals = decimals_between(highest, of_first);
  std::string text =
      equals.size() == 1
          ? fmt::format("{}: {} is best, {}", title, best.name, outcome_of(best, decimals))
          : fmt::format("{}: {} are best, {}\u00a0%", title, fmt::join(equals, " and "),
                        share_text(highest, decimals));
  if (of_first == highest) return text;
  return text + fmt::format("; {}, {}", first.name, outcome_of(first, decimals));
}

Html heading(const std::vector<RunFolder>& runs, bool goes_on) {
  Html html = "<header>\n";
  if (runs.size() == 1) {
    const RunResult result = result_of(runs.front());
    html +=
        markup("<p class=\"kicker\">Training run {}</p>\n<h1>{}</h1>\n<p class=\"lede\">{}</p>\n",
               runs.front().name, answer_of(runs), lede_of(runs.front(), result, goes_on));
    html += facts_of(runs.front(), result);
  } else {
    html += markup("<p class=\"kicker\">{} training runs</p>\n<h1>{}</h1>\n", runs.size(),
                   answer_of(runs));
    for (const RunFolder& run : runs) {
      html += markup("<p class=\"note\"><b>{}</b>: {}</p>\n", run.name,
                     lede_of(run, result_of(run), goes_on));
    }
    html += table_of(runs);
  }
  for (const RunFolder& run : runs) {
    if (const std::string lost = lost_steps(run); !lost.empty()) {
      html +=
          markup("<p class=\"warning\">{}{}.</p>\n", runs.size() > 1 ? run.name + ": " : "", lost);
    }
    for (const std::string& note : run.notes) {
      html += markup("<p class=\"warning\">{}</p>\n", note);
    }
  }
  return html + "</header>\n";
}

}  // namespace ringlet::app::report
