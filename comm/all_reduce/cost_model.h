// CostModel: predicts how long an all-reduce takes from three numbers of the machine.
//
//   seconds = steps a + bytes b + reduced g
//
// a latency of a message, b seconds per byte moved, g seconds per byte reduced; steps, bytes and
// reduced bytes are those of the strategy's longest path, with n bytes on each of p ranks:
//
//   strategy           steps             bytes            reduced
//   naive              2 (p-1)           2 (p-1) n        (p-1) n
//   tree               2 ceil(lg p)      2 ceil(lg p) n   ceil(lg p) n
//   ring, nccl, gloo   2 (p-1)           2 n (p-1)/p      n (p-1)/p
//   halving-doubling   2 lg p            2 n (p-1)/p      n (p-1)/p
//   doubling           lg p              n lg p           n lg p
//   one-shot           1                 (p-1) n          (p-1) n
//   two-shot           2                 2 n (p-1)/p      n (p-1)/p
//   library            2 (p-1)           2 n              n
//
// (Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in MPICH, 2005;
// Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms, 2009.) Where p is no power of two,
// halving-doubling and doubling work on the largest one below it; folding the others in and out
// adds 2 steps, 2 n bytes and n reduced. Any other name is taken as one message of n bytes: a line
// through its points, which tells nothing of other numbers of ranks.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace ringlet::comm {

struct CostModel {
  double latency_s = 0;
  double seconds_per_byte = 0;
  double seconds_per_reduced_byte = 0;
};

/// Steps and bytes on a strategy's longest path.
struct PathCost {
  double steps = 0;
  double bytes = 0;
  double reduced_bytes = 0;
};

/// For `bytes` on each of `ranks`; nothing is on the path of one rank.
PathCost path_cost(std::string_view strategy, int ranks, double bytes);

double predicted_seconds(std::string_view strategy, int ranks, double bytes,
                         const CostModel& model);

/// One measured all-reduce.
struct CostPoint {
  int ranks = 2;
  double bytes = 0;  ///< on each rank
  double seconds = 0;
};

struct CostFit {
  CostModel model;
  // How far the model is from the points: max(predicted / measured, measured / predicted) - 1.
  double median_error = 0;
  double worst_error = 0;
};

/// Fits the latency and the seconds per byte, neither negative, to the points. Least squares of the
/// differences of logarithms: small sizes count as much as large ones, and half the time is as
/// wrong as twice the time. Nothing for points of fewer than two sizes.
///
/// The time of reducing is part of seconds_per_byte. Within one strategy bytes moved and bytes
/// reduced grow together, so no measurement tells them apart.
std::optional<CostFit> fit_cost_model(std::string_view strategy, std::span<const CostPoint> points);

}  // namespace ringlet::comm
