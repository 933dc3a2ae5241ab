#include "app/commands/scaling_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/core_pace.h"
#include "train/telemetry/console.h"

namespace ringlet::app {

namespace {

using bench::Estimate;
using bench::ScalingPart;
using bench::ScalingRow;

std::string whole(double number) { return train::with_commas(std::llround(number)); }

/// "20,911 to 21,120"; a dash where there is none.
std::string interval_of(const Estimate& rate) {
  return rate.has_interval() ? fmt::format("{} to {}", whole(rate.low), whole(rate.high)) : "-";
}

/// "1.91 (1.88 to 1.93)", in units of `unit`.
std::string estimate_text(const Estimate& estimate, double unit, int digits) {
  if (estimate.value == 0) return "-";
  std::string text = fmt::format("{:.{}f}", estimate.value / unit, digits);
  if (estimate.has_interval() && estimate.low < estimate.high) {
    text += fmt::format(" ({:.{}f} to {:.{}f})", estimate.low / unit, digits, estimate.high / unit,
                        digits);
  }
  return text;
}

std::string rates_table(const ScalingResult& result) {
  std::string text = fmt::format("{:>8} {:>8} {:>11}  {:<22}  {:<20}  {}\n", "replicas", "batch",
                                 "samples/s", "95 % interval", "speedup", "efficiency, %");
  for (const ScalingRow& row : result.rows) {
    text +=
        fmt::format("{:>8} {:>8} {:>11}  {:<22}  {:<20}  {}{}\n", row.replicas, row.batch,
                    whole(row.rate.value), interval_of(row.rate), estimate_text(row.speedup, 1, 2),
                    estimate_text(row.efficiency, 0.01, 1), row.counts() ? "" : "  does not count");
  }
  return text;
}

std::string parts_table(const ScalingResult& result) {
  if (!result.rows.front().sees_parts()) return "";
  std::string text = "\nms a step";
  for (const ScalingPart& part : bench::kScalingParts) text += fmt::format("  {}", part.name);
  text += fmt::format("  {:>9}\n", "all");
  for (const ScalingRow& row : result.rows) {
    text += fmt::format("{:>9}", row.replicas);
    for (const ScalingPart& part : bench::kScalingParts) {
      text += fmt::format("  {:>{}.3f}", 1e3 * row.parts.*part.seconds,
                          std::string_view(part.name).size());
    }
    text += fmt::format("  {:>9.3f}\n", 1e3 * row.parts.step());
  }
  return text;
}

nlohmann::json to_json(const Estimate& estimate) {
  if (estimate.value == 0) return nullptr;
  nlohmann::json json{{"value", estimate.value}, {"low", nullptr}, {"high", nullptr}};
  if (estimate.has_interval()) json.update({{"low", estimate.low}, {"high", estimate.high}});
  return json;
}

nlohmann::json to_json(const bench::ScalingParts& parts) {
  nlohmann::json json = nlohmann::json::object();
  for (const ScalingPart& part : bench::kScalingParts) json[part.key] = parts.*part.seconds;
  return json;
}

nlohmann::json to_json(const ScalingRow& row) {
  nlohmann::json rounds = nlohmann::json::array();
  for (const bench::ScalingRound& round : row.rounds) {
    rounds.push_back({{"samples_per_second", round.rate}});
    if (row.sees_parts()) rounds.back()["phase_seconds"] = to_json(round.parts);
  }
  nlohmann::json json{{"replicas", row.replicas},
                      {"batch_size", row.batch},
                      {"layout", name_of(row.layout)},
                      {"shares", row.shares},
                      {"counts", row.counts()},
                      {"why_not", row.why_not},
                      {"samples_per_second", to_json(row.rate)},
                      {"speedup", to_json(row.speedup)},
                      {"efficiency", to_json(row.efficiency)},
                      {"rounds", rounds}};
  if (row.sees_parts()) {
    json.update({{"phase_seconds", to_json(row.parts)},
                 {"slowest_over_quickest", 1 + row.spread},
                 {"came_last", row.last}});
  }
  if (row.shared_core() >= 0) json["shared_core"] = row.shared_core();
  return json;
}

}  // namespace

std::vector<std::string> spread_of(const ScalingResult& result) {
  std::vector<std::string> lines;
  for (const ScalingRow& row : result.rows) {
    const int last = row.often_last();
    if (last < 0) continue;
    lines.push_back(fmt::format(
        "the slowest of {} replicas computes {:.1f} % longer than the quickest; replica {} comes "
        "last in {:.0f} % of the steps",
        row.replicas, 100 * row.spread, last, 100 * row.last[static_cast<std::size_t>(last)]));
  }
  return lines;
}

std::vector<std::string> notes_of(const ScalingResult& result) {
  std::vector<std::string> notes;
  const ScalingRow& first = result.rows.front();
  for (const ScalingRow& row : result.rows) {
    const std::string who = fmt::format("{} replica{}", row.replicas, row.replicas == 1 ? "" : "s");
    if (!row.counts()) notes.push_back(fmt::format("{}: does not count: {}", who, row.why_not));
    const bool one = row.replicas == 1;
    const std::string shared =
        shared_core_words(row.shared_core(), one ? "its core was" : "their cores were",
                          one ? "its other hyper-thread" : "their other hyper-threads",
                          "steps take up to twice as long");
    if (!shared.empty()) notes.push_back(fmt::format("{}: {}", who, shared));
    if (row.shares) {
      notes.push_back(fmt::format("{}: there are fewer {}, so nothing is predicted from them", who,
                                  result.too_few));
    }
    if (row.batch % row.replicas != 0) {
      notes.push_back(fmt::format("{}: the batch of {} leaves some {} samples and others {}", who,
                                  row.batch, row.share(), row.share() - 1));
    }
    if (row.layout != first.layout) {
      notes.push_back(fmt::format("{}: the samples of each lie in another layout, {} and not {}",
                                  who, name_of(row.layout), name_of(first.layout)));
    }
  }
  return notes;
}

std::string scaling_text(const ScalingResult& result) {
  std::string text;
  const std::string busy = bench::not_counting(result.rows);
  if (!busy.empty()) text += busy + "\n";
  text += result.settings + "\n\n" + rates_table(result) + parts_table(result) + "\n";
  for (const std::string& line : spread_of(result)) text += line + "\n";
  for (const std::string& note : notes_of(result)) text += note + "\n";
  return text + in_words(result.forecast) + "\n";
}

nlohmann::json scaling_json(const ScalingResult& result) {
  nlohmann::json rows = nlohmann::json::array();
  for (const ScalingRow& row : result.rows) rows.push_back(to_json(row));
  const bench::ScalingForecast& forecast = result.forecast;
  return {{"batch", name_of(result.rule)},
          {"steps", result.steps},
          {"busy", bench::not_counting(result.rows)},
          {"rows", rows},
          {"another_device",
           {{"pays", name_of(forecast.pays)},
            {"in_words", in_words(forecast)},
            {"from", forecast.from},
            {"gain", to_json(forecast.gain)},
            {"most", forecast.most},
            {"lost_seconds", forecast.lost},
            {"limit_seconds", forecast.largest},
            {"limit", forecast.limit}}}};
}

}  // namespace ringlet::app
