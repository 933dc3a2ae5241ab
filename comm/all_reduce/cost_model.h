// CostModel: predicts how long an all-reduce takes from three numbers of the machine.
//
//   seconds = steps a + bytes b + reduced g
//
// a latency of a message, b seconds per byte moved, g seconds per byte reduced; steps, bytes and
// reduced bytes are those of the strategy's longest path. Each strategy states them itself, by a
// function path_cost(ranks, bytes) in its own file; docs/all-reduce.md has them all in one table.
#pragma once

#include <bit>
#include <functional>
#include <optional>
#include <span>

#include "comm/core/cost_model.h"

namespace ringlet::comm {

/// Steps and bytes on a strategy's longest path.
struct PathCost {
  double steps = 0;
  double bytes = 0;
  double reduced_bytes = 0;
};

/// For `bytes` on each of `ranks`, of which there are two at least.
using PathCostOf = std::function<PathCost(int ranks, double bytes)>;

/// The same in a world on several machines: what goes between them, and what stays inside.
struct LevelCosts {
  PathCost between{};  ///< bytes over a machine's link, which its ranks share
  PathCost inside{};
};
/// For `each` ranks on each of `machines`. `link`: what a machine's link costs, by which a strategy
/// may choose its way.
using LevelCostsOf = LevelCosts (*)(int machines, int each, double bytes, const CostModel& link);

/// Of what no strategy here has stated: one message, a straight line over the bytes. It tells
/// nothing of other numbers of ranks. For measurements of other engines, never to pick by.
PathCost cost_of_one_message(int ranks, double bytes);

/// ceil(log2(ranks)), the steps of a binary tree.
inline double levels_of(int ranks) { return std::bit_width(static_cast<unsigned>(ranks - 1)); }

/// Seconds of one path.
double seconds_of(const PathCost& path, const CostModel& model);
/// 0 for one rank.
double predicted_seconds(const PathCostOf& path_cost, int ranks, double bytes,
                         const CostModel& model);

/// One measured all-reduce.
struct CostPoint {
  int ranks = 2;
  double bytes = 0;  ///< on each rank
  double seconds = 0;
};

struct CostFit {
  CostModel model;
  // How far the model is from the points: |predicted / measured - 1|.
  double median_error = 0;
  double worst_error = 0;
};

/// Fits the latency and the seconds per byte, neither negative, to the points. Least squares of the
/// differences of logarithms: small sizes count as much as large ones, and half the time is as
/// wrong as twice the time. Nothing for points of fewer than two sizes.
///
/// The time of reducing is part of seconds_per_byte. Within one strategy bytes moved and bytes
/// reduced grow together, so no measurement tells them apart.
std::optional<CostFit> fit_cost_model(const PathCostOf& path_cost,
                                      std::span<const CostPoint> points);

}  // namespace ringlet::comm
