// Chapter 6: the speed-up and the largest cause of two runs of `ringlet bench train --why`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "learn/check/answers.h"
#include "learn/check/own_json.h"

namespace ringlet::learn {

namespace {

constexpr std::array kCauses{"smaller_share", "disturbed", "waiting", "sums", "does_not_shrink"};
constexpr double kReadOff = 0.03;   // of a number that is read off
constexpr double kSmallest = 1e-2;  // below this a prediction was not made

struct Why {
  explicit Why(const nlohmann::json& why)
      : ideal(why.at("ideal_ms")), step(why.at("step_ms")), sums(why.at("sums_ms")) {
    for (std::size_t i = 0; i < kCauses.size(); ++i) {
      parts[i] = why.at(std::string(kCauses[i]) + "_ms");
    }
  }
  double speedup() const { return 2 * ideal / step; }
  double gap() const { return step - ideal; }

  double ideal, step, sums;
  std::array<double, kCauses.size()> parts{};
};

Why read(const std::filesystem::path& folder, int batch) {
  const auto file = folder / fmt::format("why-{}.json", batch);
  return Why(
      own_json(file, fmt::format("measure it: README.md has the command for a batch of {}", batch))
          .at("why"));
}

/// Parts that differ by less than what a measurement does are both the largest.
void check_cause(const Answers& answers, const std::string& key, const Why& why) {
  const std::string given = answers.text(key);
  const auto* const known = std::find(kCauses.begin(), kCauses.end(), given);
  if (known == kCauses.end()) {
    throw Wrong(Verdict::wrong_values,
                fmt::format("{} is \"{}\", which is none of the five parts", key, given));
  }
  const double own = why.parts[static_cast<std::size_t>(known - kCauses.begin())];
  const double largest = *std::max_element(why.parts.begin(), why.parts.end());
  if (own >= largest - 0.02 * why.step) return;
  throw Wrong(Verdict::wrong_values,
              fmt::format("{} is \"{}\", of {:.3f} ms; another part is larger", key, given, own));
}

}  // namespace

std::string check_gap(const Answers& answers, const std::filesystem::path& folder) {
  for (const char* key : {"predicted_256", "predicted_16"}) {
    if (answers.number(key) < kSmallest) {
      throw Wrong(Verdict::not_written,
                  fmt::format("{} is a guess; make it before you measure", key));
    }
  }
  std::string words;
  for (const int batch : {256, 16}) {
    const Why why = read(folder, batch);
    require_near(answers, fmt::format("speedup_{}", batch), why.speedup(), kReadOff,
                 fmt::format("one replica's step by two replicas' step, of why-{}.json", batch));
    check_cause(answers, fmt::format("cause_{}", batch), why);
    words += fmt::format("batch {}: you said {:g}, it was {:.2f}, and the largest part is {}; ",
                         batch, answers.number(fmt::format("predicted_{}", batch)), why.speedup(),
                         answers.text(fmt::format("cause_{}", batch)));
  }
  const Why why = read(folder, 16);
  if (!(why.gap() > 0)) return words + "there is no gap at 16, and so no share of it";
  const double share = 100 * why.sums / why.gap();
  if (!(std::abs(answers.number("sums_share_16") - share) <= 2)) {
    throw Wrong(
        Verdict::wrong_values,
        "sums_share_16 is not what your run has: sums by the gap between step and ideal, in "
        "percent, of why-16.json");
  }
  return words + fmt::format("sums are {:.0f} % of the gap at 16", share);
}

}  // namespace ringlet::learn
