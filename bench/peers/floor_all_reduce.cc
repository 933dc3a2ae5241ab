// The floor under every all-reduce between cores of this machine, timed as Ringlet times its own
// (measurement.h): a line of JSON for each way and size. Ranks, threads or forked processes, on a
// processor each, sum what lies in memory that all reach, and do nothing besides: no names, checks,
// records, time-outs or choices. The time of this is what the cores take; a real all-reduce takes
// longer by the price of these services.
//
//   floor_all_reduce --sizes 4K,512K
//   floor_all_reduce --ranks 8 --radix 8,4,2 --processes
//
//   two-shot                each publishes a flag and waits for the others', writes the sum of its
//                           part into all buffers, publishes a second flag and waits for those
//   two-shot-four-streams   the same of two ranks, four quarters of the half side by side
//   one-shot                each copies its buffer to one of its two windows in turn, publishes a
//                           flag, waits, and adds the others' windows to its buffer
//   ...-radix-K             the same in phases of K ranks (floor_rank.h)
//
// This is not meant for real use: if one rank dies, the others wait for ever.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <exception>
#include <functional>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "bench/peers/floor_rank.h"
#include "bench/peers/forked_ranks.h"
#include "bench/peers/options.h"

namespace ringlet::bench::peers {

namespace {

using Names = std::vector<std::string>;

struct FloorOptions {
  Options common;
  int ranks = 2;
  std::vector<int> radices{};  ///< empty: all ranks at once, and powers of two below that
  bool processes = false;
  Names strategies{kTwoShot, kFourStreams, kOneShot};
};

/// Runs `run(rank)` on threads, on a processor each, and waits for all. Throws what keeps one of
/// them from its processor; none runs then.
void run_bound(int ranks, const std::function<void(int rank)>& run) {
  std::latch bound(ranks);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
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
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(body, rank);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error != nullptr) std::rethrow_exception(error);
  }
}

/// Prints a row.
void measure_case(const std::string& strategy, int radix, std::int64_t bytes,
                  const FloorOptions& options) {
  const int iterations = most_timed(options.common.calls);
  const std::vector<int> radices = radices_of(options.ranks, radix);
  const ForkedMemory times(Meeting::bytes(options.ranks, iterations));
  const FloorMemory memory(options.ranks, strategy == kOneShot ? radices.size() : 0,
                           static_cast<std::size_t>(bytes) / sizeof(float), options.processes);
  const auto run_rank = [&](int number) {
    Meeting meeting(times.data(), number, options.ranks, iterations);
    FloorRank rank(memory, number, radices);
    Measurement row =
        measure(meeting, memory.data(number), options.common.calls, rank.all_reduce(strategy));
    row.engine = "floor";
    row.ranks_as = options.processes ? "processes" : "threads";
    row.strategy = radix < options.ranks ? fmt::format("{}-radix-{}", strategy, radix) : strategy;
    if (number == 0) print_line(row);
  };
  if (!options.processes) {
    run_bound(options.ranks, run_rank);
    return;
  }
  run_forked(options.ranks, [&](int rank) {
    bind_to_processor(rank);
    run_rank(rank);
  });
}

std::vector<int> radices_in(const FloorOptions& options) {
  if (!options.radices.empty()) return options.radices;
  std::vector<int> radices{options.ranks};
  for (int radix = 2; radix < options.ranks; radix *= 2) radices.push_back(radix);
  return radices;
}

void run(const FloorOptions& options) {
  for (const std::int64_t bytes : sizes_of(options.common)) {
    for (const std::string& strategy : options.strategies) {
      for (const int radix : radices_in(options)) {
        if (strategy == kFourStreams && options.ranks != 2) continue;
        measure_case(strategy, radix, bytes, options);
      }
    }
  }
}

int run(int argc, char** argv) {
  constexpr int kMostRanks = 64;
  CLI::App app(
      "Times the barest all-reduce (f32, sum, in place) that cores of this machine can do.",
      "floor_all_reduce");
  FloorOptions options;
  add_options(app, options.common);
  const auto count = CLI::Range(2, kMostRanks).description("");
  app.add_option("--ranks", options.ranks, "threads or processes [2]")
      ->check(count)
      ->type_name("N");
  app.add_option("--radix", options.radices,
                 "ranks that sum in a phase [all ranks, and powers of two below]")
      ->delimiter(',')
      ->check(count)
      ->type_name("LIST");
  app.add_flag("--processes", options.processes, "each rank is a forked process, not a thread");
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
