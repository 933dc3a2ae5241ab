#include "bench/peers/measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/core_pace.h"
#include "bench/all_reduce/read_all.h"
#include "bench/peers/data.h"

namespace ringlet::bench::peers {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kAlwaysChecked = 4 << 20;  // bytes up to which every result is compared
constexpr int kFewestChosen = 5;

/// Makes the compiler believe that somebody reads the value.
void keep(std::uint64_t value) { asm volatile("" : : "g"(value) : "memory"); }

/// One rank's calls of one case.
class Case {
 public:
  Case(Meeting& meeting, const Work& work) : meeting_(meeting), work_(work) {}

  /// How many calls to time: the same on every rank.
  int warm_up(int calls, double seconds) {
    double fastest = seconds;
    for (int call = -calls; call < 0; ++call) {
      const Clock::time_point begin = Clock::now();
      run(call);
      if (size() <= kAlwaysChecked) check(call);
      fastest = std::min(fastest, seconds_since(begin));
    }
    const double slowest = agree_on_largest(fastest);
    return std::clamp(static_cast<int>(seconds / slowest), kFewestChosen, kMostChosen);
  }

  void measure(int calls) {
    constexpr int kLooks = 10;
    const int calls_of_look = (calls + kLooks - 1) / kLooks;
    CoreLooks core;
    for (int call = 0; call < calls; ++call) {
      if (call % calls_of_look == 0) core.take(core_pace());
      meeting_.seconds(meeting_.rank(), call) = run(call);
      if (size() <= kAlwaysChecked || call == 0 || call == calls - 1) check(call);
    }
    core.take(core_pace());
    meeting_.wrong(meeting_.rank()) = wrong_;
    meeting_.shared_core(meeting_.rank()) = core.share();
  }

 private:
  static double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }
  std::int64_t size() const { return work_.floats * static_cast<std::int64_t>(sizeof(float)); }

  /// Seconds of one call of this rank.
  double run(int call) {
    work_.write_input(call);
    if (work_.settle) work_.settle();
    meeting_.wait();
    const Clock::time_point begin = Clock::now();
    work_.run();
    keep(read_all(work_.result.data(), static_cast<std::int64_t>(work_.result.size_bytes())));
    return seconds_since(begin);
  }
  void check(int call) { wrong_ += work_.count_wrong(call); }

  double agree_on_largest(double mine) {
    meeting_.seconds(meeting_.rank(), 0) = mine;
    meeting_.wait();
    double largest = 0;
    for (int rank = 0; rank < meeting_.ranks(); ++rank) {
      largest = std::max(largest, meeting_.seconds(rank, 0));
    }
    meeting_.wait();  // nobody overwrites what others still read
    return largest;
  }

  Meeting& meeting_;
  const Work& work_;
  std::int64_t wrong_ = 0;
};

/// Puts the ranks' results together, once all have written theirs.
Measurement collect(Meeting& meeting, int calls, const Work& work) {
  std::vector<double> slowest;
  for (int call = 0; call < calls; ++call) {
    double seconds = 0;
    for (int rank = 0; rank < meeting.ranks(); ++rank) {
      seconds = std::max(seconds, meeting.seconds(rank, call));
    }
    slowest.push_back(seconds);
  }
  Measurement measurement;
  measurement.ranks_as = "processes";
  measurement.ranks = meeting.ranks();
  measurement.collective = work.collective.name;
  if (!work.collective.reduces) measurement.op = kNoOperation;
  if (work.collective.has_root) measurement.root = kRoot;
  measurement.in_place = work.collective.is_in_place();
  measurement.count = work.floats / work.collective.parts(meeting.ranks());
  measurement.bytes = work.floats * static_cast<std::int64_t>(sizeof(float));
  set_times(measurement, std::move(slowest));
  for (int rank = 0; rank < meeting.ranks(); ++rank) {
    measurement.wrong += meeting.wrong(rank);
    measurement.shared_core = std::max(measurement.shared_core, meeting.shared_core(rank));
  }
  return measurement;
}

}  // namespace

Measurement measure(Meeting& meeting, const Work& work, const Calls& calls) {
  Case one(meeting, work);
  const int chosen = one.warm_up(calls.warm_up, calls.seconds);
  const int timed = calls.timed > 0 ? calls.timed : chosen;
  const double before = meeting.core_distance();
  one.measure(timed);
  const double after = meeting.core_distance();
  Measurement measurement;
  if (meeting.rank() == 0) measurement = collect(meeting, timed, work);
  measurement.distance_before = before;
  measurement.distance_after = after;
  meeting.wait();  // nobody overwrites its times before they are read
  return measurement;
}

Measurement measure(Meeting& meeting, std::span<float> data, const Calls& calls,
                    const std::function<void()>& all_reduce, const std::function<void()>& settle) {
  const int rank = meeting.rank(), ranks = meeting.ranks();
  const Work work{.floats = std::ssize(data),
                  .write_input = [=](int call) { write_input(data, rank, ranks, call); },
                  .run = all_reduce,
                  .result = data,
                  .count_wrong = [=](int call) { return count_wrong(data, ranks, call); },
                  .settle = settle};
  return measure(meeting, work, calls);
}

std::string json_line(const Measurement& measurement) {
  nlohmann::json row = to_json(measurement);
  row["cores_ns"] = {measurement.distance_before, measurement.distance_after};
  return row.dump();
}

void print_line(const Measurement& measurement) {
  fmt::print("{}\n", json_line(measurement));
  std::fflush(stdout);
}

}  // namespace ringlet::bench::peers
