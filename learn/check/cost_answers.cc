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

/// Seconds of two ranks.
struct Times {
  double doubling = 0, ring = 0;
};

/// By size. A row may not count, since other work was in the way: of both strategies it has to.
std::map<double, Times> times_in(const nlohmann::json& measured) {
  std::map<double, Times> times;
  for (const auto& row : measured.at("rows")) {
    if (row.at("ranks") != 2 || !row.value("counts", true)) continue;
    const double seconds = 1e-6 * row.at("median_us").get<double>();
    if (row.at("strategy") == "doubling") times[row.at("bytes")].doubling = seconds;
    if (row.at("strategy") == "ring") times[row.at("bytes")].ring = seconds;
  }
  std::erase_if(times,
                [](const auto& row) { return !(row.second.doubling * row.second.ring > 0); });
  if (times.size() >= kFewestSizes) return times;
  throw Wrong(Verdict::not_written,
              fmt::format("measured.json has {} sizes of which the rows of doubling and ring on "
                          "two ranks count; README.md has the command that measures more",
                          times.size()));
}

/// From which measured size on the ring is faster; 0 where it never is.
double measured_crossing(const std::map<double, Times>& times) {
  double from = 0;
  for (const auto& [bytes, seconds] : times) {
    if (seconds.ring >= seconds.doubling) {
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
  const std::map<double, Times> times = times_in(measured);
  const auto& [least, shortest] = *times.begin();
  const auto& [most, longest] = *times.rbegin();
  require_near(answers, "latency_us", 1e6 * shortest.doubling, kReadFrom,
               fmt::format("doubling's time for {:.0f} bytes, in microseconds", least));
  const auto speed = [most = most](const char* whose) {
    return fmt::format(
        "{:.0f} bytes, the largest size of which both rows count, by {} time for "
        "them, in 10^9 a second",
        most, whose);
  };
  require_near(answers, "doubling_gbs", 1e-9 * most / longest.doubling, kReadFrom,
               speed("doubling's"));
  require_near(answers, "ring_gbs", 1e-9 * most / longest.ring, kReadFrom, speed("the ring's"));
  const double expected = expected_crossing(answers);
  require_near(answers, "crossing_bytes", expected, kReadFrom,
               expected > 0 ? "solve a + n b = 2 a + n c for your three numbers"
                            : "by your numbers the ring is at no size the faster one");
  const double met = measured_crossing(times);
  const std::string saw = met > 0
                              ? fmt::format("in your measurement it was from {:g} bytes on", met)
                              : "in your measurement it never was";
  return expected > 0 ? fmt::format("by your numbers the ring is faster from {:.0f} bytes on; {}",
                                    expected, saw)
                      : "by your numbers the ring is never faster; " + saw;
}

}  // namespace ringlet::learn
