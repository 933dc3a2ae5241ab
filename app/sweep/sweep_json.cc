// sweep.json, written and read.
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "app/sweep/sweep_results.h"
#include "base/files/file_error.h"
#include "base/files/json_fields.h"
#include "base/files/json_text.h"
#include "base/one_line.h"
#include "train/recipe/version.h"

namespace ringlet::app::sweep {

namespace {

using nlohmann::json;

constexpr const char* kKind = "ringlet sweep";
constexpr std::array kStatusNames{"waiting", "done", "failed", "stopped"};
constexpr int kMaxDepth = 8;

/// JSON has no number that is none.
json number_or_null(double value) { return std::isfinite(value) ? json(value) : json(); }

json values_as_json(const SweepPlan& plan, std::size_t setting) {
  json values = json::object();
  for (std::size_t i = 0; i < plan.axes.size(); ++i) {
    values[plan.axes[i].key] = plan.settings[setting][i];
  }
  return values;
}

json run_as_json(const SweepPlan& plan, const Run& run, const Outcome& outcome) {
  return {{"folder", run.folder},
          {"values", values_as_json(plan, run.setting)},
          {"seed", run.seed},
          {"status", kStatusNames[static_cast<std::size_t>(outcome.status)]},
          {"exit_code", outcome.exit_code},
          {"error", outcome.error},
          {"epochs", outcome.epochs},
          {"train_loss", number_or_null(outcome.train_loss)},
          {"test_loss", number_or_null(outcome.test_loss)},
          {"test_accuracy", number_or_null(outcome.test_accuracy)},
          {"seconds", outcome.seconds}};
}

json setting_as_json(const SweepPlan& plan, const Outcomes& outcomes, std::size_t setting,
                     const Figure& figure) {
  const std::vector<double> values = values_of(plan, outcomes, setting, figure);
  const Spread spread = spread_of(values);
  return {{"values", values_as_json(plan, setting)},
          {"runs", values.size()},
          {"by_seed", values},
          {"mean", values.empty() ? json() : json(spread.mean)},
          {"deviation", values.size() < 2 ? json() : json(spread.deviation)}};
}

json comparison_as_json(const SweepPlan& plan, const Figure& figure, std::size_t best,
                        const Comparison& comparison) {
  const bool is_known = comparison.has_interval();
  json result{{"best", values_as_json(plan, best)},
              {"other", values_as_json(plan, comparison.setting)},
              {"behind", comparison.behind},
              {"differ", is_known ? json(comparison.verdict == Verdict::worse) : json()},
              {"in_words", in_words(plan, figure, best, comparison)}};
  if (is_known) result["interval"] = {comparison.interval.low, comparison.interval.high};
  return result;
}

Status status_named(const std::string& name) {
  for (std::size_t i = 0; i < kStatusNames.size(); ++i) {
    if (name == kStatusNames[i]) return static_cast<Status>(i);
  }
  throw std::runtime_error("'status' is '" + name + "'");
}

double number_in(const json& run, const char* name) {
  if (run.is_object() && run.contains(name) && run[name].is_null()) return NAN;
  double value = 0;
  read_field(run, name, value);
  return value;
}

std::pair<std::string, Outcome> run_in(const json& run) {
  std::string folder, status;
  Outcome outcome;
  read_field(run, "folder", folder);
  read_field(run, "status", status);
  read_field(run, "exit_code", outcome.exit_code);
  read_field(run, "error", outcome.error);
  read_field(run, "epochs", outcome.epochs);
  read_field(run, "seconds", outcome.seconds);
  outcome.status = status_named(status);
  outcome.train_loss = number_in(run, "train_loss");
  outcome.test_loss = number_in(run, "test_loss");
  outcome.test_accuracy = number_in(run, "test_accuracy");
  return {folder, outcome};
}

}  // namespace

json to_json(const SweepPlan& plan, const Outcomes& outcomes,
             const std::vector<std::string>& flags) {
  const Figure figure = figure_of(outcomes);
  json axes = json::array(), runs = json::array(), settings = json::array(), pairs = json::array();
  for (const Axis& axis : plan.axes) axes.push_back({{"flag", axis.key}, {"values", axis.values}});
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    runs.push_back(run_as_json(plan, plan.runs[i], outcomes[i]));
  }
  for (std::size_t i = 0; i < plan.settings.size(); ++i) {
    settings.push_back(setting_as_json(plan, outcomes, i, figure));
  }
  const std::vector<std::size_t> ranked = ranking(plan, outcomes, figure);
  for (const Comparison& comparison : comparisons(plan, outcomes, figure)) {
    pairs.push_back(comparison_as_json(plan, figure, ranked.front(), comparison));
  }
  return {{"kind", kKind},        {"version", train::kVersion}, {"flags", flags},
          {"sweep", axes},        {"seeds", plan.seeds},        {"figure", figure.name},
          {"settings", settings}, {"comparisons", pairs},       {"runs", runs}};
}

FormerSweep former_sweep(const std::string& source, const std::string& text) {
  const json document = parse_json_text(source, text, kMaxDepth);
  try {
    std::string kind;
    read_field(document, "kind", kind);
    if (kind != kKind) throw std::runtime_error("'kind' is '" + kind + "'");
    FormerSweep former;
    for (const json& flag : document.at("flags")) former.flags.push_back(flag.get<std::string>());
    for (const json& run : document.at("runs")) former.runs.push_back(run_in(run));
    return former;
  } catch (const std::exception& error) {
    throw FileError(on_one_line(source) + " is not what a sweep writes (" +
                    on_one_line(error.what()) + "); --force begins the sweep anew");
  }
}

}  // namespace ringlet::app::sweep
