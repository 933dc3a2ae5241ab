// Chapter 4: latency, bandwidth and the crossing, against the learner's `bench all-reduce --json`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "learn/check/answers.h"
#include "learn/check/own_json.h"

namespace ringlet::learn {

namespace {

constexpr double kReadFrom = 0.05;  // of a number that is read off
constexpr int kFewestSizes = 4;

/// Seconds by size, of two ranks.
using Times = std::map<double, double>;

Times times_of(const nlohmann::json& measured, const std::string& strategy) {
  Times times;
  for (const auto& row : measured.at("rows")) {
    if (row.at("strategy") == strategy && row.at("ranks") == 2 && row.value("counts", true)) {
      times[row.at("bytes")] = 1e-6 * row.at("median_us").get<double>();
    }
  }
  if (times.size() < kFewestSizes) {
    throw Wrong(Verdict::not_written,
                fmt::format("measured.json has {} sizes of {} on two ranks; README.md has the "
                            "command that measures more",
                            times.size(), strategy));
  }
  return times;
}

/// Gigabytes a second at the largest size.
double gbs_of(const Times& times) { return 1e-9 * times.rbegin()->first / times.rbegin()->second; }

/// From which measured size on the ring is faster; 0 where it never is.
double measured_crossing(const Times& doubling, const Times& ring) {
  double from = 0;
  for (const auto& [bytes, seconds] : doubling) {
    const auto other = ring.find(bytes);
    if (other == ring.end()) continue;
    if (other->second >= seconds) {
      from = 0;
    } else if (from == 0) {
      from = bytes;
    }
  }
  return from;
}

/// By the learner's own three numbers: a + n b = 2 a + n c.
double expected_crossing(const Answers& answers) {
  const double latency = 1e-6 * answers.number("latency_us");
  const double doubling = 1e-9 / answers.number("doubling_gbs"),
               ring = 1e-9 / answers.number("ring_gbs");
  return ring < doubling ? latency / (doubling - ring) : 0;
}

}  // namespace

std::string check_cost_answers(const Answers& answers, const std::filesystem::path& folder) {
  const nlohmann::json measured =
      own_json(folder / "measured.json", "measure it: README.md has the command");
  const Times doubling = times_of(measured, "doubling"), ring = times_of(measured, "ring");
  require_near(answers, "latency_us", 1e6 * doubling.begin()->second, kReadFrom,
               "doubling's time of the smallest size, in microseconds");
  require_near(answers, "doubling_gbs", gbs_of(doubling), kReadFrom,
               "the bytes of the largest size by doubling's time for them, in 10^9 a second");
  require_near(answers, "ring_gbs", gbs_of(ring), kReadFrom,
               "the bytes of the largest size by the ring's time for them, in 10^9 a second");
  const double expected = expected_crossing(answers);
  require_near(answers, "crossing_bytes", expected, kReadFrom,
               expected > 0 ? "solve a + n b = 2 a + n c for your three numbers"
                            : "by your numbers the ring is at no size the faster one");
  const double met = measured_crossing(doubling, ring);
  const std::string saw = met > 0
                              ? fmt::format("in your measurement it was from {:g} bytes on", met)
                              : "in your measurement it never was";
  return expected > 0 ? fmt::format("by your numbers the ring is faster from {:.0f} bytes on; {}",
                                    expected, saw)
                      : "by your numbers the ring is never faster; " + saw;
}

}  // namespace ringlet::learn
