#include "learn/check/verdict.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace ringlet::learn {

std::string_view name_of(Verdict verdict) {
  constexpr std::string_view kNames[] = {
      "passed",       "not-written",    "no-build",   "crash",        "endless",
      "deadlock",     "unmatched",      "wrong-peer", "wrong-values", "ranks-differ",
      "out-of-range", "too-many-bytes", "race"};
  return kNames[static_cast<std::size_t>(verdict)];
}

std::string text_of(const Case& at) {
  std::string text = fmt::format("p = {}, n = {}, {}", at.ranks, at.elements, name_of(at.op));
  if (at.dtype != DType::f32) text += fmt::format(", {}", name_of(at.dtype));
  if (at.machines > 1) text += fmt::format(", {} machines", at.machines);
  return text;
}

std::string json_of(const std::string& chapter, const Finding& finding) {
  nlohmann::ordered_json json{{"chapter", chapter},
                              {"verdict", name_of(finding.verdict)},
                              {"layer", finding.layer == ' ' ? "" : std::string(1, finding.layer)},
                              {"words", finding.words}};
  if (finding.at.ranks > 0) {
    json["ranks"] = finding.at.ranks;
    json["elements"] = finding.at.elements;
    json["op"] = name_of(finding.at.op);
  }
  if (finding.costs) {
    json["bytes_total"] = finding.costs->bytes_total;
    json["bytes_busiest"] = finding.costs->bytes_busiest;
    json["messages"] = finding.costs->messages;
  }
  if (!finding.trace.empty()) json["trace"] = finding.trace;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ringlet::learn
