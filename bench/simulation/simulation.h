// Simulation: how long each all-reduce strategy would take on machines that are not there. Its
// schedule is recorded and played (comm/schedule/), and its formula stands beside.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/all_reduce/measurement.h"
#include "bench/simulation/costs.h"
#include "bench/simulation/quantities.h"
#include "comm/all_reduce/strategies.h"
#include "comm/schedule/network.h"

namespace ringlet::bench {

/// One all-reduce of f32.
struct Simulated {
  std::string strategy;
  Layout layout{};
  std::int64_t bytes = 0;          ///< on each rank, whole elements
  double seconds = 0;              ///< until the last rank of the played schedule ends
  double model_seconds = 0;        ///< by the strategy's own formula, which knows of no slow rank
  std::int64_t steps = 0;          ///< of the rank that has the most
  std::int64_t messages = 0;       ///< of all ranks
  std::int64_t busiest_bytes = 0;  ///< the most that a rank sends
  std::string why_not{};           ///< there is nothing of all that; empty: there is
  std::optional<Measurement> measured{};
  /// It was measured on fewer processors than a machine has ranks: they took turns, of which no
  /// model of a network knows.
  bool took_turns = false;

  /// seconds / measured seconds - 1; only with `measured`.
  double error() const { return 1e6 * seconds / measured->median_us - 1; }
};

struct Simulation {
  std::vector<comm::Strategy> strategies{};
  std::vector<Layout> layouts{};
  std::vector<std::int64_t> sizes{};  ///< an f32 at least
  std::vector<SlowRank> slow{};       ///< of each layout
};

comm::Network network_of(const Layout& layout, const LinkCosts& costs,
                         const std::vector<SlowRank>& slow = {});

/// By the strategy's formula; on several machines by those of its levels.
double model_seconds(const comm::Strategy& strategy, const comm::Network& network, double bytes);

/// A row for each layout, size and strategy, in this order.
std::vector<Simulated> simulate(const Simulation& simulation, const Costs& costs);

/// Puts the measured rows beside the simulated ones of the same strategy, ranks, machines and
/// bytes: Ringlet's own sums of f32 in place, of several the quickest. `cores`: of the machine that
/// measured; 0: not known. Returns how many it found.
int set_measured(std::vector<Simulated>& rows, const std::vector<Measurement>& measured, int cores);

/// Tables for people.
std::string to_text(const std::vector<Simulated>& rows, const Costs& costs);
/// {"rows": [...]}
nlohmann::json to_json(const std::vector<Simulated>& rows);

}  // namespace ringlet::bench
