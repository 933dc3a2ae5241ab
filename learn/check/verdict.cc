#include "learn/check/verdict.h"

#include <fmt/format.h>

#include "comm/report/trace_events.h"

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
  if (const char* const begin = at.machine_of.data(); *begin != 0) {
    return text + fmt::format(", ranks on machines {}", fmt::join(begin, begin + at.ranks, " "));
  }
  if (at.machines > 1) text += fmt::format(", {} machines", at.machines);
  return text;
}

// Without a library for JSON, which takes the compiler longer than all else here.
std::string json_of(const std::string& chapter, const Finding& finding) {
  using comm::to_json_text;
  std::string text = fmt::format(R"({{"chapter":{},"verdict":"{}","layer":"{}","words":{})",
                                 to_json_text(chapter), name_of(finding.verdict),
                                 finding.layer == ' ' ? "" : std::string(1, finding.layer),
                                 to_json_text(finding.words));
  if (finding.at.ranks > 0) {
    text += fmt::format(R"(,"ranks":{},"elements":{},"op":"{}")", finding.at.ranks,
                        finding.at.elements, name_of(finding.at.op));
  }
  if (finding.costs) {
    text += fmt::format(R"(,"bytes_total":{},"bytes_busiest":{},"messages":{})",
                        finding.costs->bytes_total, finding.costs->bytes_busiest,
                        finding.costs->messages);
  }
  if (!finding.trace.empty()) text += R"(,"trace":)" + to_json_text(finding.trace);
  return text + "}";
}

}  // namespace ringlet::learn
