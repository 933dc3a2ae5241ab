#include "train/setup/precision_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/median.h"

namespace ringlet::train {

namespace {

bool is_below(const std::vector<double>& some, const std::vector<double>& others, double clearly) {
  return clearly * median_of(some) < *std::min_element(others.begin(), others.end());
}

std::string duration(const std::vector<double>& all) {
  const double seconds = median_of(all);
  return seconds < .9995 ? fmt::format("{:.3g} ms", 1e3 * seconds)
                         : fmt::format("{:.3g} s", seconds);
}

}  // namespace

Faster faster_of(const PrecisionTimes& times) {
  constexpr double kClearly = 1.05, kClearlyBesideOthers = 1.3;
  if (times.narrow_seconds.empty() || times.f32_seconds.empty()) return Faster::neither;
  const double clearly = times.busy.empty() ? kClearly : kClearlyBesideOthers;
  if (is_below(times.narrow_seconds, times.f32_seconds, clearly)) return Faster::narrow;
  if (is_below(times.f32_seconds, times.narrow_seconds, clearly)) return Faster::f32;
  return Faster::neither;
}

std::string in_words(const PrecisionTimes& times) {
  const char* narrow = name_of(times.narrow);
  if (!times.why_not.empty()) {
    return fmt::format("{} was not timed beside f32: {}", narrow, times.why_not);
  }
  const Faster faster = faster_of(times);
  std::string words = fmt::format("{} takes {} a step here and f32 {}", narrow,
                                  duration(times.narrow_seconds), duration(times.f32_seconds));
  if (times.samples < times.samples_of_step) {
    words +=
        fmt::format(" (by {} of a replica's {} samples)", times.samples, times.samples_of_step);
  }
  words += faster == Faster::neither
               ? ": neither is clearly faster"
               : fmt::format(": {} is faster", faster == Faster::f32 ? "f32" : narrow);
  if (!times.busy.empty()) words += fmt::format("; the machine was busy meanwhile: {}", times.busy);
  return words;
}

// JSON has digits enough for each double to come back.
std::string to_text(const PrecisionTimes& times) {
  return nlohmann::json{name_of(times.narrow), times.narrow_seconds,  times.f32_seconds,
                        times.samples,         times.samples_of_step, times.busy,
                        times.why_not}
      .dump();
}

PrecisionTimes precision_times_of(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  return {.narrow = parse_precision(json.at(0).get<std::string>()),
          .narrow_seconds = json.at(1).get<std::vector<double>>(),
          .f32_seconds = json.at(2).get<std::vector<double>>(),
          .samples = json.at(3).get<std::int64_t>(),
          .samples_of_step = json.at(4).get<std::int64_t>(),
          .busy = json.at(5).get<std::string>(),
          .why_not = json.at(6).get<std::string>()};
}

}  // namespace ringlet::train
