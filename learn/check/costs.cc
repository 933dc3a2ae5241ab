#include "learn/check/costs.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

#include "comm/schedule/play.h"
#include "comm/schedule/recording.h"
#include "comm/transport/local/local_transport.h"
#include "learn/check/lockstep.h"

namespace ringlet::learn {

namespace {

constexpr double kNear = 1e-6;
constexpr std::int64_t kEach = 840;  // elements of a part

/// A network on which only one of the three costs a second.
struct Unit {
  const char* of = "";
  comm::CostModel costs{};
  double comm::PathCost::*says = nullptr;
};
constexpr Unit kUnits[] = {{"steps", {1, 0, 0}, &comm::PathCost::steps},
                           {"bytes on the longest path", {0, 1, 0}, &comm::PathCost::bytes},
                           {"bytes added", {0, 0, 1}, &comm::PathCost::reduced_bytes}};

void check_path(const comm::Strategy& strategy, int ranks, Board& board) {
  const std::int64_t count = kEach * ranks;
  const comm::PathCost path = strategy.path_cost(ranks, static_cast<double>(4 * count));
  for (const Unit& unit : kUnits) {
    const comm::Network network = comm::one_machine(ranks, unit.costs);
    const double played =
        comm::seconds_of(comm::record(strategy.make, network, {.count = count}), network);
    if (std::abs(path.*unit.says - played) <= kNear * (1 + played)) continue;
    board.conclude(Verdict::wrong_values,
                   fmt::format("path_cost says {:g} {}; played, your ring has {:g}",
                               path.*unit.says, unit.of, played));
  }
}

/// Of parts that differ in length, too: by an element, and of long arrays by more (parts.h).
void check_sent(const comm::Strategy& strategy, int ranks, std::int64_t count, Board& board) {
  const comm::Schedule schedule =
      comm::record(strategy.make, comm::one_machine(ranks, {1e-6, 1e-9, 0}), {.count = count});
  comm::LocalGroup group(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    std::int64_t sent = 0;
    for (const comm::Step& step : schedule.of(rank).steps) {
      if (step.to != comm::kNobody) sent += schedule.out_bytes(step) / 4;
    }
    const std::int64_t says =
        strategy.make(group.transport(rank))->elements_sent(count).value_or(-1);
    if (says == sent) continue;
    board.conclude(Verdict::wrong_values,
                   fmt::format("rank {}: elements_sent says {}; it sends {}", rank, says, sent));
  }
}

}  // namespace

void check_costs(const comm::Strategy& strategy, Board& board) try {
  for (int ranks = 2; ranks <= 64; ranks += ranks < 8 ? 1 : 8) {
    board.begin('B', {.ranks = ranks, .elements = kEach * ranks});
    check_path(strategy, ranks, board);
  }
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (const std::int64_t count : {0, 1, 3, 8, 17, 1000, 9001}) {
      board.begin('B', {.ranks = ranks, .elements = count});
      check_sent(strategy, ranks, count, board);
    }
  }
} catch (...) {
  conclude_of_exception(board, -1);
}

}  // namespace ringlet::learn
