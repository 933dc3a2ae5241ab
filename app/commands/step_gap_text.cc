#include "app/commands/step_gap_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace ringlet::app {

namespace {

constexpr int kBar = 40;           // characters of the longest
constexpr double kNothing = 0.03;  // of the ideal: no gap worth a cause
constexpr double kUnrest = 1.3;    // from here on the machine was busy

struct Part {
  const char* name;
  double seconds;
  std::string cause;  // "... is most of it: CAUSE"
};

std::string smaller_share_cause(std::int64_t share, int vector) {
  const std::string samples = fmt::format("{} sample{}", share, share == 1 ? "" : "s");
  if (share % vector != 0) {
    return fmt::format(
        "each replica has {}, which do not fill a vector of {}, so a slower layout is taken; try a "
        "larger --batch-size",
        samples, vector);
  }
  return fmt::format(
      "each replica has {}, and every layer's own cost comes once for each replica; try a larger "
      "--batch-size",
      samples);
}

std::array<Part, 5> parts_of(const bench::StepGap& gap, std::int64_t batch_size, int vector) {
  const std::int64_t share = (batch_size + gap.ranks - 1) / gap.ranks;
  return {{{"a smaller share is slower", gap.smaller_share, smaller_share_cause(share, vector)},
           {"replicas disturb each other", gap.disturbed,
            "they share caches, memory and clock, or have too few cores; try fewer --replicas, or "
            "--threads 1"},
           {"waiting for the slowest", gap.waiting,
            "the replicas do not come at the same time; look for other programs on these cores"},
           {"sums that are not hidden", gap.sums,
            "try ringlet tune with --sync auto, another --bucket-kb, or --accumulate"},
           {"what does not shrink", gap.does_not_shrink,
            "data, update and what lies between; try --workers, or a larger --batch-size"}}};
}

std::string line(const char* name, double seconds, double longest) {
  const auto length = std::clamp<std::int64_t>(std::llround(kBar * seconds / longest), 0, kBar);
  return fmt::format("{:<30} {:9.3f}  {}\n", name, 1e3 * seconds,
                     std::string(static_cast<std::size_t>(length), '#'));
}

std::string sentence(const bench::StepGap& gap, const std::array<Part, 5>& parts) {
  if (gap.gap() < kNothing * gap.ideal) {
    return fmt::format(
        "{} replicas take no longer than a {} of one replica's time: nothing to gain.\n", gap.ranks,
        gap.ranks == 2 ? "half" : fmt::format("{}th", gap.ranks));
  }
  const Part& largest =
      *std::max_element(parts.begin(), parts.end(),
                        [](const Part& a, const Part& b) { return a.seconds < b.seconds; });
  return fmt::format("{:.3f} of the {:.3f} ms too many: {}: {}.\n", 1e3 * largest.seconds,
                     1e3 * gap.gap(), largest.name, largest.cause);
}

}  // namespace

std::string step_gap_text(const bench::StepGap& gap, std::int64_t batch_size, int vector) {
  const std::array<Part, 5> parts = parts_of(gap, batch_size, vector);
  double longest = std::max(gap.ideal, gap.step);
  for (const Part& part : parts) longest = std::max(longest, part.seconds);
  std::string text = fmt::format("{:<30} {:>9}   (the quickest of {} steps of each kind)\n", "why",
                                 "ms a step", gap.steps);
  text += line(gap.ranks == 2 ? "half of one replica's time"
                              : fmt::format("a {}th of one replica's time", gap.ranks).c_str(),
               gap.ideal, longest);
  for (const Part& part : parts) text += line(part.name, part.seconds, longest);
  text += line(fmt::format("a step of {} replicas", gap.ranks).c_str(), gap.step, longest);
  text += '\n' + sentence(gap, parts);
  if (gap.unrest > kUnrest) {
    text += fmt::format(
        "The machine was busy: half of the steps took {:.1f} times the quickest or longer.\n",
        gap.unrest);
  }
  return text;
}

nlohmann::json step_gap_json(const bench::StepGap& gap) {
  return {{"ideal_ms", 1e3 * gap.ideal},
          {"smaller_share_ms", 1e3 * gap.smaller_share},
          {"disturbed_ms", 1e3 * gap.disturbed},
          {"waiting_ms", 1e3 * gap.waiting},
          {"sums_ms", 1e3 * gap.sums},
          {"does_not_shrink_ms", 1e3 * gap.does_not_shrink},
          {"step_ms", 1e3 * gap.step},
          {"steps", gap.steps},
          {"unrest", gap.unrest}};
}

}  // namespace ringlet::app
