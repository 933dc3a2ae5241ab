// Figures of verification: how well the distances of embeddings tell whether two pictures are of
// the same identity.
//
//   unit embeddings     e / max(|e|, 1e-12); d = |a - b|^2 = 2 - 2 cos; the same where d < t
//   folds               ten, contiguous; sizes differ by one at most, the larger first
//   accuracy            of each fold, with the t at which the other nine are right most often; the
//                       mean over folds and the population's standard deviation
//     on the grid       t = 0, 0.01, ..., 3.99, the first of the best: the field's figure
//     exact             t in the middle between two neighbours of the sorted distances: ours
//   TAR@FAR             t = the floor(FAR n)-th smallest of the n distances of different ones,
//                       counted from 0; the share of the same ones with d < t. Nothing where
//                       FAR n < 1, or where there are none of either
//   XNorm               the mean of |e|
//
// Pairs in the order of their file. Sources: scikit-learn's KFold; InsightFace's verification.py.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ringlet::train {

inline constexpr int kFolds = 10;
/// 1 in so many.
inline constexpr std::array<std::int64_t, 4> kFalseAccepts{10, 100, 1000, 10000};

struct FoldedAccuracy {
  double mean = 0;
  double deviation = 0;
};

struct RocPoint {
  double threshold = 0;
  double false_accepts = 0;  ///< share of the different ones with d < threshold
  double true_accepts = 0;   ///< share of the same ones
};

struct VerificationFigures {
  std::int64_t pairs = 0;
  std::int64_t same = 0;
  FoldedAccuracy grid, exact;
  std::array<std::optional<double>, kFalseAccepts.size()> true_accepts{};
  /// From (0, 0) to (1, 1), a point behind each distance. Empty where there are none of a kind.
  std::vector<RocPoint> roc{};
};

/// Of pairs with these distances, at least one. Throws ContractError for none, and for a distance
/// that is not finite.
VerificationFigures figures_of(std::span<const double> distances, const std::vector<bool>& same);

/// Rows as unit vectors, and what was seen of their lengths.
struct Lengths {
  double sum = 0;  ///< of |e|
  std::int64_t rows = 0;
  std::int64_t zeros = 0;  ///< shorter than 1e-12
};

/// The distances of rows 2k and 2k + 1 of `embeddings`, [2k, width].
std::vector<double> pair_distances(std::span<const double> embeddings, std::int64_t width,
                                   Lengths& lengths);

}  // namespace ringlet::train
