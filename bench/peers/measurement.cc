#include "bench/peers/measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "bench/peers/data.h"

namespace ringlet::peers {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kAlwaysChecked = 4 << 20;  // bytes up to which every result is compared

bool is_checked(std::int64_t bytes, int call, int calls) {
  return bytes <= kAlwaysChecked || call == 0 || call == calls - 1;
}

/// The compiler must believe that somebody looks at the value.
void keep(float value) { asm volatile("" : : "g"(value) : "memory"); }

/// Seconds of one call of this rank.
double time_of(std::span<const float> data, const std::function<void()>& all_reduce) {
  const Clock::time_point begin = Clock::now();
  all_reduce();
  keep(read_all(data));
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// What the ranks left, once all have.
Measurement collect(Meeting& meeting, int calls) {
  std::vector<double> slowest;
  for (int call = 0; call < calls; ++call) {
    double seconds = 0;
    for (int rank = 0; rank < meeting.ranks(); ++rank) {
      seconds = std::max(seconds, meeting.seconds(rank, call));
    }
    slowest.push_back(seconds);
  }
  Measurement measurement{.times = times_of(std::move(slowest))};
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
  const int rank = meeting.rank();
  std::int64_t wrong = 0;
  for (int call = -calls.warm_up; call < calls.timed; ++call) {
    write_input(data, rank, call);
    if (settle) settle();
    meeting.wait();
    const double seconds = time_of(data, all_reduce);
    if (call >= 0) meeting.seconds(rank, call) = seconds;
    if (is_checked(static_cast<std::int64_t>(data.size_bytes()), call, calls.timed)) {
      wrong += count_wrong(data, meeting.ranks(), call);
    }
  }
  meeting.wrong(rank) = wrong;
  meeting.wait();
  const Measurement measurement = rank == 0 ? collect(meeting, calls.timed) : Measurement{};
  meeting.wait();  // nobody overwrites its times before they are read
  return measurement;
}

std::string json_line(const Engine& engine, int ranks, std::int64_t bytes, const Calls& calls,
                      const Measurement& measurement) {
  const Times& times = measurement.times;
  const double algbw = 1e-9 * static_cast<double>(bytes) / times.median;
  return fmt::format(
      R"({{"engine":"{}","ranks_as":"processes","transport":"{}","strategy":"{}","ranks":{},)"
      R"("bytes":{},"count":{},"type":"f32","op":"sum","in_place":true,"iterations":{},)"
      R"("median_us":{:.3f},"min_us":{:.3f},"p99_us":{:.3f},"algbw_gbs":{:.6g},)"
      R"("busbw_gbs":{:.6g},"wrong":{}}})",
      engine.name, engine.transport, engine.strategy, ranks, bytes, bytes / 4, calls.timed,
      1e6 * times.median, 1e6 * times.min, 1e6 * times.p99, algbw, algbw * 2 * (ranks - 1) / ranks,
      measurement.wrong);
}

}  // namespace ringlet::peers
