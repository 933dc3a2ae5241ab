#include "learn/check/measure.h"

#include <fmt/format.h>

#include "comm/schedule/check.h"
#include "comm/schedule/play.h"
#include "comm/schedule/recording.h"
#include "learn/check/lockstep.h"
#include "learn/check/trial.h"

namespace ringlet::learn {

namespace {

constexpr std::int64_t kBytes = kMeasuredElements * 4;

/// The most that a rank may send.
std::int64_t share_of(const Chapter& chapter, std::int64_t ranks) {
  const std::int64_t share = 2 * kBytes * (ranks - 1) / ranks;
  return chapter.bound == Bound::windows ? share + 2 * kBytes : share;
}

comm::Schedule recorded(const comm::MakeAllReduce& make, const comm::Network& network,
                        std::int64_t elements, Board& board) {
  int rank = -1;
  const comm::MakeAllReduce noted = [&](comm::Transport& transport) {
    board.note(rank = transport.rank(), 0);
    return make(transport);
  };
  try {
    return comm::record(noted, network, {.count = elements});
  } catch (...) {
    conclude_of_exception(board, rank);
  }
}

/// Concludes where it is no faster than the flat ring; returns both times, in words.
std::string check_levels(const comm::MakeAllReduce& make, int machines, Board& board) {
  constexpr int kEach = 8;
  constexpr std::int64_t kElements = 129'024;  // 504 KiB
  const comm::Network network =
      comm::equal_machines(machines, kEach, {10e-6, 1 / 12.5e9, 0}, {2e-6, 1 / 100e9, 0});
  board.begin('B', {.ranks = network.ranks, .elements = kElements, .machines = machines});
  const comm::Schedule own = recorded(make, network, kElements, board);
  board.work_alone(true);
  const comm::Problem problem = comm::find_problem(own);
  if (problem.kind != comm::Problem::Kind::none) {
    board.conclude(
        problem.kind == comm::Problem::Kind::circle ? Verdict::deadlock : Verdict::unmatched,
        problem.text);
  }
  const double seconds = comm::seconds_of(own, network);
  board.work_alone(false);
  const comm::LevelCosts ring = comm::Strategies().find("ring")->costs_of_levels(
      machines, kEach, 4.0 * kElements, network.between);
  const double flat = comm::seconds_of(ring.between, network.between) +
                      comm::seconds_of(ring.inside, network.inside);
  const std::string words =
      fmt::format("it takes {:.3g} ms, and the flat ring {:.3g} ms", seconds * 1e3, flat * 1e3);
  if (seconds < flat)
    return fmt::format("; {} KiB played on {} x {} ranks: {}", kElements / 256, machines, kEach,
                       words);
  board.conclude(Verdict::too_many_bytes, words + "; less has to go between machines");
}

}  // namespace

Costs measure(const Chapter& chapter, const comm::MakeAllReduce& make, Board& board) {
  Trial trial(chapter, make, comm::one_machine(kMeasuredRanks, {}), {}, board);
  trial.run({.elements = kMeasuredElements}, Fill::who);
  const comm::Totals totals = trial.totals();
  return {totals.bytes, totals.busiest_bytes, totals.messages};
}

void check_bound(const Chapter& chapter, int ranks, const comm::Totals& totals, Board& board) {
  if (chapter.bound == Bound::star && totals.bytes > 2 * (ranks - 1) * kBytes) {
    board.conclude(Verdict::too_many_bytes,
                   fmt::format("all ranks together send {} bytes; 2 (p - 1) n are {}", totals.bytes,
                               2 * (ranks - 1) * kBytes));
  }
  const bool has_share = chapter.bound == Bound::share || chapter.bound == Bound::windows;
  // Who sums an array in pieces cuts each into parts that differ by an element.
  const std::int64_t share = share_of(chapter, ranks), uneven = share / 50;
  if (has_share && totals.busiest_bytes > share + uneven) {
    board.conclude(Verdict::too_many_bytes,
                   fmt::format("the busiest rank moves {} bytes; 2 n (p - 1) / p are {}",
                               totals.busiest_bytes, 2 * kBytes * (ranks - 1) / ranks));
  }
}

std::string check_levels(const comm::MakeAllReduce& make, Board& board) {
  check_levels(make, 16, board);
  return check_levels(make, 512, board);
}

std::string words_of_passed(const Chapter& chapter, const Costs& own, const Costs& star) {
  std::string words = fmt::format(
      "{} ranks, {} bytes each: {} bytes move in all, {} of the busiest rank, in {} messages",
      kMeasuredRanks, kBytes, own.bytes_total, own.bytes_busiest, own.messages);
  if (chapter.bound == Bound::star) return words;
  return words + fmt::format("; the star: {} bytes, {} of its busiest rank, in {} messages",
                             star.bytes_total, star.bytes_busiest, star.messages);
}

}  // namespace ringlet::learn
