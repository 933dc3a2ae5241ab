#include "bench/peers/measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

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
Measurement collect(Meeting& meeting, int calls) {
  std::vector<double> slowest;
  for (int call = 0; call < calls; ++call) {
    double seconds = 0;
    for (int rank = 0; rank < meeting.ranks(); ++rank) {
      seconds = std::max(seconds, meeting.seconds(rank, call));
    }
    slowest.push_back(seconds);
  }
  Measurement measurement{.times = times_of(std::move(slowest)), .iterations = calls};
  for (int rank = 0; rank < meeting.ranks(); ++rank) measurement.wrong += meeting.wrong(rank);
  return measurement;
}

}  // namespace

Times times_of(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const std::size_t n = seconds.size();
  const auto rank99 = static_cast<std::size_t>(std::ceil(0.99 * static_cast<double>(n)));
  return {.median = (seconds[(n - 1) / 2] + seconds[n / 2]) / 2,
          .min = seconds.front(),
          .p99 = seconds[std::max<std::size_t>(rank99, 1) - 1]};
}

Measurement measure(Meeting& meeting, std::span<float> data, const Calls& calls,
                    const std::function<void()>& all_reduce, const std::function<void()>& settle) {
  Case one(meeting, data, all_reduce, settle);
  const int chosen = one.warm_up(calls.warm_up);
  const int timed = calls.timed > 0 ? calls.timed : chosen;
  const double before = meeting.core_distance();
  one.measure(timed);
  const double after = meeting.core_distance();
  Measurement measurement;
  if (meeting.rank() == 0) measurement = collect(meeting, timed);
  measurement.distance_before = before;
  measurement.distance_after = after;
  meeting.wait();  // nobody overwrites its times before they are read
  return measurement;
}

std::string json_line(const Engine& engine, int ranks, std::int64_t bytes,
                      const Measurement& measurement) {
  const Times& times = measurement.times;
  const double algbw = 1e-9 * static_cast<double>(bytes) / times.median;
  return fmt::format(
      R"({{"engine":"{}","ranks_as":"{}","transport":"{}","strategy":"{}","ranks":{},)"
      R"("bytes":{},"count":{},"type":"f32","op":"sum","in_place":true,"iterations":{},)"
      R"("median_us":{:.3f},"min_us":{:.3f},"p99_us":{:.3f},"algbw_gbs":{:.6g},)"
      R"("busbw_gbs":{:.6g},"wrong":{},"cores_ns":[{:.1f},{:.1f}]}})",
      engine.name, engine.ranks_as, engine.transport, engine.strategy, ranks, bytes, bytes / 4,
      measurement.iterations, 1e6 * times.median, 1e6 * times.min, 1e6 * times.p99, algbw,
      algbw * 2 * (ranks - 1) / ranks, measurement.wrong, measurement.distance_before,
      measurement.distance_after);
}

}  // namespace ringlet::bench::peers
