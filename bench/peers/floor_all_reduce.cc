// The floor under every all-reduce between two cores of this machine, timed as Ringlet times its
// own (measurement.h): a line of JSON for each way and size. Two threads, on a processor each, sum
// what lies in memory that both reach, and do nothing besides: no names, checks, records, time-outs
// or choices. The time of this is what the cores take; a real all-reduce takes longer by the price
// of these services.
//
//   floor_all_reduce --sizes 4K,512K
//
//   two-shot                each publishes a flag and waits for the other's, writes the sum of its
//                           half into both buffers, publishes a second flag and waits for that
//   two-shot-four-streams   the same, four quarters of the half side by side
//   one-shot                each copies its buffer to one of its two windows in turn, publishes a
//                           flag, waits, and adds the other's window to its buffer
//
// This is not meant for real use: if one thread dies, the other waits for ever.
#include <fmt/format.h>
#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <latch>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "bench/peers/floor_loops.h"
#include "bench/peers/forked_ranks.h"
#include "bench/peers/options.h"

namespace ringlet::bench::peers {

namespace {

constexpr int kRanks = 2;
constexpr std::size_t kFloatsOfALine = 16;

using Names = std::vector<std::string>;
const std::string kTwoShot = "two-shot", kFourStreams = "two-shot-four-streams",
                  kOneShot = "one-shot";

struct FloorOptions {
  Options common;
  Names strategies{kTwoShot, kFourStreams, kOneShot};
};

/// Floats that begin a large page, on large pages where the system gives them. So the floor does
/// not include look-ups of small pages. Not touched before use.
class LargePages {
 public:
  explicit LargePages(std::size_t count) : count_(count) {
    constexpr std::size_t kPage = 2 << 20;
    const std::size_t bytes = (count * sizeof(float) + kPage - 1) / kPage * kPage;
    memory_.reset(static_cast<float*>(std::aligned_alloc(kPage, bytes)));
    if (memory_ == nullptr) throw std::bad_alloc();
    (void)::madvise(memory_.get(), bytes, MADV_HUGEPAGE);  // without them it is merely slower
  }
  std::span<float> span() const { return {memory_.get(), count_}; }

 private:
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };
  std::unique_ptr<float, Free> memory_;
  std::size_t count_;
};

/// Counts how often a rank has come to a point where the other may wait for it.
struct alignas(128) Flag {  // two lines: processors fetch them in pairs
  std::atomic<std::uint64_t> count{0};
};

/// The memory that both ranks reach, by rank.
struct Shared {
  explicit Shared(std::size_t count)
      : data{LargePages(count), LargePages(count)},
        windows{{{LargePages(count), LargePages(count)}, {LargePages(count), LargePages(count)}}} {}

  std::array<LargePages, kRanks> data;
  std::array<std::array<LargePages, 2>, kRanks> windows;
  std::array<Flag, kRanks> flags;
};

/// One rank's side.
class Rank {
 public:
  Rank(Shared& shared, int rank)
      : data_(shared.data[at(rank)].span()),
        other_(shared.data[at(1 - rank)].span()),
        half_(half(rank, data_.size())),
        flag_(shared.flags[at(rank)].count),
        other_flag_(shared.flags[at(1 - rank)].count) {
    for (std::size_t turn = 0; turn < windows_.size(); ++turn) {
      windows_[turn] = shared.windows[at(rank)][turn].span().data();
      other_windows_[turn] = shared.windows[at(1 - rank)][turn].span().data();
    }
  }

  std::span<float> data() const { return data_; }

  std::function<void()> all_reduce(const std::string& strategy) {
    if (strategy == kOneShot) return [this] { one_shot(); };
    const auto sum = strategy == kTwoShot ? loops_.sum_into_both : loops_.sum_into_both_by_quarters;
    return [this, sum] { two_shot(sum); };
  }

 private:
  struct Part {
    std::size_t begin, count;
  };
  static constexpr std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  /// Whole lines, but for the last one's end.
  static Part half(int rank, std::size_t count) {
    const std::size_t lines = (count + kFloatsOfALine - 1) / kFloatsOfALine;
    const std::size_t first = std::min(count, (lines + 1) / 2 * kFloatsOfALine);
    return rank == 0 ? Part{0, first} : Part{first, count - first};
  }

  void two_shot(decltype(FloorLoops::sum_into_both) sum) {
    meet();
    sum(data_.data() + half_.begin, other_.data() + half_.begin, half_.count);
    meet();
  }

  /// Two windows: while the other still adds this call's, the next call writes the other one, and
  /// the meeting in there says that this one is free again.
  void one_shot() {
    float* const window = windows_[turn_];
    const float* const other_window = other_windows_[turn_];
    turn_ = 1 - turn_;
    std::memcpy(window, data_.data(), data_.size_bytes());
    meet();
    loops_.add(data_.data(), other_window, data_.size());
  }

  void meet() {
    flag_.store(++met_, std::memory_order_release);
    for (int looks = 0; other_flag_.load(std::memory_order_acquire) < met_; ++looks) {
      if (looks >= kLooks) std::this_thread::yield();  // both on one processor
    }
  }
  static constexpr int kLooks = 100'000;  // some hundred microseconds

  const FloorLoops loops_ =
      for_instruction_set(widest_instruction_set(), [](auto set) { return floor_loops_of(set); });
  std::span<float> data_, other_;
  Part half_;
  std::array<float*, 2> windows_{};
  std::array<const float*, 2> other_windows_{};
  std::size_t turn_ = 0;
  std::atomic<std::uint64_t>&flag_, &other_flag_;
  std::uint64_t met_ = 0;
};

/// Runs `run(rank)` on two threads, on a processor each, and waits for both. Throws what keeps one
/// of them from its processor; neither runs then.
void run_bound(const std::function<void(int rank)>& run) {
  std::latch bound(kRanks);
  std::array<std::exception_ptr, kRanks> errors;
  const auto body = [&](int rank) {
    try {
      bind_to_processor(rank);
    } catch (...) {
      errors[static_cast<std::size_t>(rank)] = std::current_exception();
    }
    bound.arrive_and_wait();
    for (const std::exception_ptr& error : errors) {
      if (error != nullptr) return;
    }
    run(rank);
  };
  std::thread first(body, 0), second(body, 1);
  first.join();
  second.join();
  for (const std::exception_ptr& error : errors) {
    if (error != nullptr) std::rethrow_exception(error);
  }
}

Measurement measure_case(const std::string& strategy, std::int64_t bytes, const Calls& calls) {
  const int iterations = most_timed(calls);
  const ForkedMemory memory(Meeting::bytes(kRanks, iterations));
  Shared shared(static_cast<std::size_t>(bytes) / sizeof(float));
  Measurement measurement;
  run_bound([&](int number) {
    Meeting meeting(memory.data(), number, kRanks, iterations);
    Rank rank(shared, number);
    const Measurement mine = measure(meeting, rank.data(), calls, rank.all_reduce(strategy));
    if (number == 0) measurement = mine;
  });
  return measurement;
}

void run(const FloorOptions& options) {
  for (const std::int64_t bytes : sizes_of(options.common)) {
    for (const std::string& strategy : options.strategies) {
      Measurement row = measure_case(strategy, bytes, options.common.calls);
      row.engine = "floor";
      row.ranks_as = "threads";
      row.strategy = strategy;
      print_line(row);
    }
  }
}

int run(int argc, char** argv) {
  CLI::App app(
      "Times the barest all-reduce (f32, sum, in place) that two cores of this machine can do.",
      "floor_all_reduce");
  FloorOptions options;
  add_options(app, options.common);
  app.add_option("--strategies", options.strategies, "which ways to sum [all]")
      ->delimiter(',')
      ->check(CLI::IsMember(options.strategies))
      ->type_name("LIST");
  return run_program(app, argc, argv, true, [&] { run(options); });
}

}  // namespace

}  // namespace ringlet::bench::peers

int main(int argc, char** argv) {
  namespace peers = ringlet::bench::peers;
  return peers::run_guarded("floor_all_reduce", [&] { return peers::run(argc, argv); });
}
