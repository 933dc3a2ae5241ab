#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "app/report/sections.h"
#include "base/error.h"
#include "train/files/recipe_json.h"

namespace ringlet::app::report {

namespace {

using Settings = std::map<std::string, std::string>;

/// "lr = 0.1" of a config.toml as ringlet writes it: a line a setting. Comments are what is not
/// set. Where the run lies is no setting of it.
Settings settings_of(const std::string& config) {
  Settings settings;
  std::istringstream lines(config);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t sign = line.find(" = ");
    if (line.starts_with('#') || sign == line.npos || line.starts_with("out = ")) continue;
    settings[line.substr(0, sign)] = line.substr(sign + 3);
  }
  return settings;
}

/// Nothing where it is not known which those of the run's model are.
std::optional<Settings> defaults_of(const RunFolder& run, const DefaultConfig& default_config) {
  if (run.config.empty() || !default_config) return {};
  try {
    return settings_of(default_config(run.model_name()));
  } catch (const Error&) {  // a model of another program, or of another version
    return {};
  }
}

std::string value_in(const Settings& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found == settings.end() ? "\u2013" : found->second;
}

/// What a config.toml says that nobody gave.
std::set<std::string> chosen_in(const std::string& config) {
  std::set<std::string> chosen;
  std::istringstream lines(config);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(kChosenByPictures)) continue;
    std::istringstream names(line.substr(kChosenByPictures.size()));
    for (std::string name; names >> name;) chosen.insert(name.substr(0, name.find(',')));
  }
  return chosen;
}

/// A run's settings beside the defaults.
struct Setup {
  Settings here, defaults;
  std::set<std::string> chosen;
};

Html differences_table(const std::vector<RunFolder>& runs, const std::vector<Setup>& setups) {
  std::set<std::string> names;
  for (const auto& [here, defaults, chosen] : setups) {
    for (const auto& [name, value] : here) {
      if (value_in(defaults, name) != value) names.insert(name);
    }
  }
  if (names.empty()) return "<p class=\"note\" id=\"settings\">Nothing but defaults.</p>\n";
  Html html = "<div class=\"scroll\"><table id=\"settings\"><thead><tr><th>setting</th>";
  for (const RunFolder& run : runs) html += markup("<th>{}</th>", run.name);
  html += "<th>default</th></tr></thead><tbody>\n";
  for (const std::string& name : names) {
    html += markup("<tr><td>{}</td>", name);
    std::set<std::string> usual;
    for (const auto& [here, defaults, chosen] : setups) {
      const std::string value = value_in(here, name), of_model = value_in(defaults, name);
      html += markup("<td{}>{}{}</td>", value == of_model ? Html() : Html(" class=\"changed\""),
                     value, chosen.contains(name) ? " (chosen by the pictures)" : "");
      usual.insert(of_model);
    }
    html += markup("<td>{}</td></tr>\n", usual.size() == 1 ? *usual.begin() : "the model\u2019s");
  }
  return html + "</tbody></table></div>\n";
}

/// What differs from the defaults; "" where that is not known of every run.
Html differences_of(const std::vector<RunFolder>& runs, const DefaultConfig& default_config) {
  std::vector<Setup> setups;
  for (const RunFolder& run : runs) {
    const auto defaults = defaults_of(run, default_config);
    if (!defaults) return "";
    setups.push_back({settings_of(run.config), *defaults, chosen_in(run.config)});
  }
  return "<h3>What differs from the defaults</h3>\n" + differences_table(runs, setups);
}

Html configuration_of(const RunFolder& run) {
  if (!run.config.empty()) {
    return folded("The whole configuration", markup("<pre>{}</pre>\n", escaped_lines(run.config)));
  }
  if (!run.recipe)
    return "<p class=\"note\">The run has saved neither config.toml nor a state.</p>\n";
  Pairs pairs;
  const nlohmann::json recipe = train::all_fields(*run.recipe);
  for (const auto& [name, value] : recipe.items()) {
    pairs.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return folded("The recipe of its state", list_of(pairs));
}

std::string whole(double number) {
  return std::isfinite(number) ? fmt::format("{:.0f}", number) : "";
}

std::string gib(double bytes) {
  return std::isfinite(bytes) ? fmt::format("{:.1f} GiB", bytes / (1 << 30)) : "";
}

Html machine_of(const RunFolder& run) {
  if (!run.facts) return "<p class=\"note\">There is no run.json.</p>\n";
  const RunFacts& facts = *run.facts;
  const double processes = facts.number("/run/processes");
  return list_of({{"Processor", facts.text("/machine/cpu/name")},
                  {"Cores", whole(facts.number("/machine/cpu/cores"))},
                  {"Instructions", facts.text("/machine/cpu/instruction_set")},
                  {"Memory", gib(facts.number("/machine/memory_bytes"))},
                  {"GPUs", facts.gpus()},
                  {"System", facts.text("/machine/system")},
                  {"Replicas on", facts.devices()},
                  {"Processes", processes > 1 ? whole(processes) : ""},
                  {"Machines", facts.text("/run/machines")},
                  {"Threads a replica", whole(facts.number("/run/threads"))},
                  {"All-reduce", facts.replicas() > 1 ? facts.text("/run/sync") : ""},
                  {"Layout", facts.text("/run/layout")},
                  {"Precision", facts.text("/run/precision")},
                  {"Data", facts.text("/data/description")},
                  {"Ringlet", facts.ringlet()},
                  {"Started", facts.text("/started")}});
}

}  // namespace

Html setup_section(const std::vector<RunFolder>& runs, const DefaultConfig& default_config) {
  Html html = "<h2>Configuration and machine</h2>\n" + differences_of(runs, default_config);
  for (const RunFolder& run : runs) {
    html += markup("<h3>{}</h3>\n", runs.size() > 1 ? run.name : "The machine");
    const std::string suffix = runs.size() > 1 ? fmt::format("-{}", &run - runs.data() + 1) : "";
    html += machine_of(run) + sync_table(run, "sync" + suffix) + configuration_of(run);
  }
  return html;
}

}  // namespace ringlet::app::report
