#include "app/sweep/sweep_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "app/report/html.h"
#include "app/report/svg_plot.h"
#include "train/recipe/version.h"

namespace ringlet::app::sweep {

namespace {

using report::Html;
using report::markup;

constexpr std::size_t kMostCurves = 7;  // colours that can be told apart

struct Results {
  const SweepPlan& plan;
  const Outcomes& outcomes;
  Figure figure = figure_of(outcomes);
  std::vector<std::size_t> ranked = ranking(plan, outcomes, figure);
  std::vector<double> values(std::size_t setting) const {
    return values_of(plan, outcomes, setting, figure);
  }
};

/// The headline: what is best, and whether that can be known.
std::string answer_of(const Results& results) {
  if (results.ranked.empty()) return "No run has ended yet.";
  return answer(results.plan, results.outcomes, results.figure);
}

Html verdicts_of(const Results& results) {
  const auto all = comparisons(results.plan, results.outcomes, results.figure);
  if (all.empty()) return {};
  Html html = "<ul id=\"verdicts\">\n";
  for (const Comparison& one : all) {
    html += markup("<li>{}.</li>\n",
                   in_words(results.plan, results.figure, results.ranked.front(), one));
  }
  return html + "</ul>\n";
}

Html settings_table(const Results& results) {
  Html html = markup(
      "<div class=\"scroll\"><table class=\"wide\" id=\"settings\"><thead><tr><th></th>"
      "<th>setting</th><th>runs</th><th>mean {}</th><th>deviation</th><th>by seed</th></tr>"
      "</thead><tbody>\n",
      results.figure.name);
  for (std::size_t rank = 0; rank < results.ranked.size(); ++rank) {
    const std::size_t setting = results.ranked[rank];
    const std::vector<double> values = results.values(setting);
    const Spread spread = spread_of(values);
    std::vector<std::string> each;
    for (const double value : values) each.push_back(results.figure.text(value));
    html += markup(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", rank + 1,
        name_of(results.plan, setting), values.size(), results.figure.text(spread.mean),
        values.size() > 1 ? results.figure.text(spread.deviation) : std::string("\u2013"),
        fmt::format("{}", fmt::join(each, ", ")));
  }
  return html + "</tbody></table></div>\n";
}

std::string state_of(const Outcome& outcome) {
  switch (outcome.status) {
    case Status::done:
      return "done";
    case Status::failed:
      return fmt::format("code {}: {}", outcome.exit_code, outcome.error);
    case Status::stopped:
      return "stopped";
    case Status::waiting:
      break;
  }
  return "not begun";
}

Html runs_table(const Results& results) {
  Html html =
      "<div class=\"scroll\"><table class=\"wide\" id=\"runs\"><thead><tr><th>folder</th>"
      "<th class=\"text\">state</th><th>epochs</th><th>training loss</th>"
      "<th>test loss</th><th>test accuracy</th><th>seconds</th></tr></thead><tbody>\n";
  for (std::size_t i = 0; i < results.plan.runs.size(); ++i) {
    const Outcome& outcome = results.outcomes[i];
    html += markup(
        "<tr><td>{}</td><td class=\"text why\">{}</td><td>{}</td><td>{:.4f}</td>"
        "<td>{:.4f}</td><td>{:.2f} %</td><td>{:.1f}</td></tr>\n",
        results.plan.runs[i].folder, state_of(outcome), outcome.epochs, outcome.train_loss,
        outcome.test_loss, 100 * outcome.test_accuracy, outcome.seconds);
  }
  return html + "</tbody></table></div>\n";
}

/// Each run as a point over the rank of its setting, and the means.
report::Plot settings_plot(const Results& results) {
  report::Plot plot{
      "by-setting", results.figure.name, "by setting, as numbered in the table", {}, {}, {}};
  plot.x.title = "setting";
  plot.x.whole = true;
  plot.x.include_low = 0.5;
  plot.x.include_high = static_cast<double>(results.ranked.size()) + 0.5;
  plot.y.round = true;
  plot.y.percent = results.figure.higher_is_better;
  report::Series runs{.name = "each seed", .color = report::kGrey, .look = report::Look::points};
  report::Series means{.name = "mean", .color = report::kBest, .look = report::Look::points};
  for (std::size_t rank = 0; rank < results.ranked.size(); ++rank) {
    const std::vector<double> values = results.values(results.ranked[rank]);
    const auto at = static_cast<double>(rank + 1);
    for (const double value : values) runs.curve.add(at, value);
    means.curve.add(at, spread_of(values).mean);
  }
  plot.series = {runs, means};
  return plot;
}

/// The mean over a setting's runs by epoch, between the least and the most of them.
report::Series curve_of(const Results& results, const Curves& curves, std::size_t setting,
                        double train::EpochMetrics::*field) {
  report::Series series;
  series.name = name_of(results.plan, setting);
  series.look = report::Look::line;
  for (std::size_t epoch = 0;; ++epoch) {
    std::vector<double> values;
    double at = 0;
    for (std::size_t i = 0; i < results.plan.runs.size(); ++i) {
      if (results.plan.runs[i].setting != setting || epoch >= curves[i].size()) continue;
      if (!std::isfinite(curves[i][epoch].*field)) continue;
      values.push_back(curves[i][epoch].*field);
      at = static_cast<double>(curves[i][epoch].epoch);
    }
    if (values.empty()) return series;
    series.curve.add(at, spread_of(values).mean);
    series.low.push_back(*std::min_element(values.begin(), values.end()));
    series.high.push_back(*std::max_element(values.begin(), values.end()));
  }
}

report::Plot epochs_plot(const Results& results, const Curves& curves) {
  const bool has_accuracy = results.figure.higher_is_better;
  report::Plot plot{"epochs",
                    results.figure.name,
                    "by epoch: the mean over seeds; band: from the least to the most",
                    {},
                    {},
                    {}};
  plot.x.title = "epoch";
  plot.x.whole = true;
  plot.y.round = true;
  plot.y.percent = has_accuracy;
  plot.whole_bands = true;
  for (std::size_t rank = 0; rank < std::min(results.ranked.size(), kMostCurves); ++rank) {
    plot.series.push_back(curve_of(
        results, curves, results.ranked[rank],
        has_accuracy ? &train::EpochMetrics::test_accuracy : &train::EpochMetrics::test_loss));
    plot.series.back().color = static_cast<int>(rank);
  }
  return plot;
}

}  // namespace

std::string sweep_page(const SweepPlan& plan, const Outcomes& outcomes, const Curves& curves,
                       const std::string& title) {
  require(outcomes.size() == plan.runs.size() && curves.size() == plan.runs.size(), "sweep_page",
          "an outcome and a curve for each run are needed");
  const Results results{plan, outcomes};
  Html body =
      markup("<header><h1>{}</h1>\n<p class=\"lede\">{}</p></header>\n", answer_of(results), title);
  body += verdicts_of(results);
  body += "<div class=\"grid\">\n" + report::figure_of(settings_plot(results)) +
          report::figure_of(epochs_plot(results, curves)) + "</div>\n";
  body += "<h2>Settings</h2>\n" + settings_table(results);
  body += "<h2>Runs</h2>\n" + runs_table(results);
  body += markup("<footer>Made by ringlet {} train --sweep.</footer>\n", train::kVersion);
  return report::page_of(title + " (Ringlet)", body);
}

}  // namespace ringlet::app::sweep
