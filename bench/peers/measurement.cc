#include "bench/peers/measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "bench/all_reduce/read_all.h"
#include "bench/peers/data.h"

namespace ringlet::bench::peers {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kAlwaysChecked = 4 << 20;  // bytes up to which every result is compared
constexpr double kSecondsOfACase = 0.2;           // where the number of calls is chosen
constexpr int kFewestChosen = 5;

/// Makes the compiler believe that somebody reads the value.
void keep(std::uint64_t value) { asm volatile("" : : "g"(value) : "memory"); }

/// One rank's calls of one case.
class Case {
 public:
  Case(Meeting& meeting, std::span<float> data, const std::function<void()>& all_reduce,
       const std::function<void()>& settle)
      : meeting_(meeting), data_(data), all_reduce_(all_reduce), settle_(settle) {}

  /// How many calls to time: the same on every rank.
  int warm_up(int calls) {
    double fastest = kSecondsOfACase;
    for (int call = -calls; call < 0; ++call) {
      const Clock::time_point begin = Clock::now();
      run(call);
      if (size() <= kAlwaysChecked) check(call);
      fastest = std::min(fastest, seconds_since(begin));
    }
    const double slowest = agree_on_largest(fastest);
    return std::clamp(static_cast<int>(kSecondsOfACase / slowest), kFewestChosen, kMostChosen);
  }

  void measure(int calls) {
    for (int call = 0; call < calls; ++call) {
      meeting_.seconds(meeting_.rank(), call) = run(call);
      if (size() <= kAlwaysChecked || call == 0 || call == calls - 1) check(call);
    }
    meeting_.wrong(meeting_.rank()) = wrong_;
  }

 private:
  static double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }
  std::int64_t size() const { return static_cast<std::int64_t>(data_.size_bytes()); }

  /// Seconds of one call of this rank.
  double run(int call) {
    write_input(data_, meeting_.rank(), call);
    if (settle_) settle_();
    meeting_.wait();
    const Clock::time_point begin = Clock::now();
    all_reduce_();
    keep(read_all(data_.data(), size()));
    return seconds_since(begin);
  }
  void check(int call) { wrong_ += count_wrong(data_, meeting_.ranks(), call); }

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
  std::span<float> data_;
  const std::function<void()>& all_reduce_;
  const std::function<void()>& settle_;
  std::int64_t wrong_ = 0;
};

/// Puts the ranks' results together, once all have written theirs.
Measurement collect(Meeting& meeting, int calls, std::int64_t count) {
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
  measurement.count = count;
  measurement.bytes = count * static_cast<std::int64_t>(sizeof(float));
  set_times(measurement, std::move(slowest));
  for (int rank = 0; rank < meeting.ranks(); ++rank) measurement.wrong += meeting.wrong(rank);
  return measurement;
}

}  // namespace

Measurement measure(Meeting& meeting, std::span<float> data, const Calls& calls,
                    const std::function<void()>& all_reduce, const std::function<void()>& settle) {
  Case one(meeting, data, all_reduce, settle);
  const int chosen = one.warm_up(calls.warm_up);
  const int timed = calls.timed > 0 ? calls.timed : chosen;
  const double before = meeting.core_distance();
  one.measure(timed);
  const double after = meeting.core_distance();
  Measurement measurement;
  if (meeting.rank() == 0) measurement = collect(meeting, timed, std::ssize(data));
  measurement.distance_before = before;
  measurement.distance_after = after;
  meeting.wait();  // nobody overwrites its times before they are read
  return measurement;
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
