#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/report/html.h"
#include "app/report/sections.h"
#include "train/files/recipe_json.h"

namespace ringlet::app::report {

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

std::string list_of(const Pairs& pairs) {
  std::string html = "<dl class=\"pairs\">\n";
  for (const auto& [name, value] : pairs) {
    if (value.empty()) continue;
    html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped(name), escaped(value));
  }
  return html + "</dl>\n";
}

std::string configuration_of(const RunFolder& run) {
  if (!run.config.empty()) return "<pre>" + escaped_lines(run.config) + "</pre>\n";
  if (!run.recipe)
    return "<p class=\"note\">The run has saved neither config.toml nor a state.</p>\n";
  Pairs pairs;
  const nlohmann::json recipe = train::to_json(*run.recipe);
  for (const auto& [name, value] : recipe.items()) {
    pairs.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return list_of(pairs);
}

std::string whole(double number) {
  return std::isfinite(number) ? fmt::format("{:.0f}", number) : "";
}

std::string gib(double bytes) {
  return std::isfinite(bytes) ? fmt::format("{:.1f} GiB", bytes / (1 << 30)) : "";
}

std::string machine_of(const RunFolder& run) {
  if (!run.facts) return "<p class=\"note\">There is no run.json.</p>\n";
  const RunFacts& facts = *run.facts;
  return list_of({{"Processor", facts.processor},
                  {"Cores", whole(facts.cores)},
                  {"Instructions", facts.instruction_set},
                  {"Memory", gib(facts.memory_bytes)},
                  {"GPUs", facts.gpus},
                  {"System", facts.system},
                  {"Replicas on", facts.devices},
                  {"Processes", facts.processes > 1 ? whole(facts.processes) : ""},
                  {"Threads a replica", whole(facts.threads)},
                  {"All-reduce", facts.replicas > 1 ? facts.sync : ""},
                  {"Layout", facts.layout},
                  {"Data", facts.data_description},
                  {"Ringlet", facts.ringlet},
                  {"Started", facts.started}});
}

}  // namespace

std::string setup_section(const std::vector<RunFolder>& runs) {
  std::string html = "<h2>Configuration and machine</h2>\n";
  for (const RunFolder& run : runs) {
    if (runs.size() > 1) html += fmt::format("<h3>{}</h3>\n", escaped(run.name));
    html += "<div class=\"side\">\n<div>" + configuration_of(run) + "</div>\n<div>" +
            machine_of(run) + "</div>\n</div>\n";
  }
  return html;
}

}  // namespace ringlet::app::report
