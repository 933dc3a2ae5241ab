#include "learn/check/measure.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/schedule/check.h"
#include "comm/schedule/contributions.h"
#include "comm/schedule/play.h"
#include "comm/schedule/recording.h"
#include "learn/check/lockstep.h"
#include "learn/check/trial.h"

namespace ringlet::learn {

namespace {

constexpr std::int64_t kBytes = kMeasuredElements * 4;

/// The most that a rank may send.
std::int64_t share_of(const Chapter& chapter, std::int64_t ranks) {
  const std::int64_t part = kBytes / ranks, share = 2 * (ranks - 1) * part;
  return chapter.bound == Bound::direct ? share + part : share;
}

/// Of ranks that come to its end: concludes where they do not.
comm::Schedule recorded(const comm::MakeAllReduce& make, const comm::Network& network,
                        const comm::Recording& what, Board& board) {
  int rank = -1;
  const comm::MakeAllReduce noted = [&](comm::Transport& transport) {
    board.note(rank = transport.rank(), 0);
    return make(transport);
  };
  const comm::Schedule schedule = [&] {
    try {
      return comm::record(noted, network, what);
    } catch (...) {
      conclude_of_exception(board, rank);
    }
  }();
  board.work_alone(true);
  const comm::Problem problem = comm::find_problem(schedule);
  board.work_alone(false);
  if (problem.kind != comm::Problem::Kind::none) {
    board.conclude(
        problem.kind == comm::Problem::Kind::circle ? Verdict::deadlock : Verdict::unmatched,
        problem.text);
  }
  return schedule;
}

comm::Network of_machines(int machines, int each) {
  return comm::equal_machines(machines, each, {10e-6, 1 / 12.5e9, 0}, {2e-6, 1 / 100e9, 0});
}

/// Concludes where not everybody's numbers are everywhere once. By notes, since more machines than
/// have room in an f32 sum of Fill::who may take another way.
void check_contributions(const comm::MakeAllReduce& make, int machines, int each, Board& board) {
  constexpr std::int64_t kElements = 1000;
  const comm::Network network = of_machines(machines, each);
  board.begin('B', {.ranks = network.ranks, .elements = kElements, .machines = machines});
  const comm::Schedule own =
      recorded(make, network, {.count = kElements, .addresses = true}, board);
  board.work_alone(true);
  const std::vector<comm::Parts> results = comm::contributions_of(own);
  board.work_alone(false);
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    for (const comm::Part& part : results[rank]) {
      const auto wrong = std::find_if(part.counts.begin(), part.counts.end(),
                                      [](int count) { return count != 1; });
      if (wrong == part.counts.end()) continue;
      board.conclude(
          Verdict::wrong_values,
          fmt::format("rank {}, element {} has the numbers of rank {} {} times; it should have "
                      "everybody's, each once, added by exchanges",
                      rank, part.begin / 4, wrong - part.counts.begin(), *wrong));
    }
  }
}

/// Concludes where it is no faster than the flat ring; returns both times, in words.
std::string check_levels(const comm::MakeAllReduce& make, int machines, Board& board) {
  constexpr int kEach = 8;
  constexpr std::int64_t kElements = 129'024;  // 504 KiB
  const comm::Network network = of_machines(machines, kEach);
  board.begin('B', {.ranks = network.ranks, .elements = kElements, .machines = machines});
  const comm::Schedule own = recorded(make, network, {.count = kElements}, board);
  board.work_alone(true);
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
  // An element is sent p - 1 times until one rank has its sum, and p - 1 times until all have.
  const std::int64_t least = 2 * (ranks - 1) * kBytes;
  if (chapter.bound != Bound::direct && totals.bytes < least) {
    board.conclude(Verdict::out_of_range,
                   fmt::format("all ranks together send {} bytes; with messages alone it takes "
                               "2 (p - 1) n, {}: somebody reaches into others' memory",
                               totals.bytes, least));
  }
  if (chapter.bound == Bound::star && totals.bytes > least) {
    board.conclude(
        Verdict::too_many_bytes,
        fmt::format("all ranks together send {} bytes; 2 (p - 1) n are {}", totals.bytes, least));
  }
  const bool has_share = chapter.bound == Bound::share || chapter.bound == Bound::direct;
  // Who sums an array in pieces cuts each into parts that differ by an element.
  const std::int64_t share = share_of(chapter, ranks), uneven = share / 50;
  if (has_share && totals.busiest_bytes > share + uneven) {
    board.conclude(Verdict::too_many_bytes,
                   fmt::format("the busiest rank moves {} bytes; 2 n (p - 1) / p are {}",
                               totals.busiest_bytes, 2 * kBytes * (ranks - 1) / ranks));
  }
}

std::string check_levels(const comm::MakeAllReduce& make, Board& board) {
  check_contributions(make, 5, 3, board);
  check_contributions(make, 8, 8, board);
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
