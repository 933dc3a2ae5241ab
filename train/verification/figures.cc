#include "train/verification/figures.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace ringlet::train {

namespace {

constexpr double kThresholdStep = 0.01;
constexpr int kSteps = 400;

/// Begins of the folds, and the end of the last.
std::vector<std::int64_t> fold_begins(std::int64_t pairs) {
  const std::int64_t folds = std::min<std::int64_t>(kFolds, pairs);
  std::vector<std::int64_t> begins{0};
  for (std::int64_t f = 0; f < folds; ++f) {
    begins.push_back(begins.back() + pairs / folds + (f < pairs % folds ? 1 : 0));
  }
  return begins;
}

/// For each fold and each of `thresholds`, how many of its pairs are right. Thresholds rise.
class RightCounts {
 public:
  RightCounts(std::span<const double> distances, const std::vector<bool>& same,
              const std::vector<double>& thresholds, const std::vector<std::int64_t>& begins)
      : counts_(begins.size() - 1), all_(thresholds.size()) {
    for (std::size_t f = 0; f < counts_.size(); ++f) {
      counts_[f].assign(thresholds.size(), 0);
      // Below its distance a different pair is right; above it one of the same.
      std::vector<std::int64_t> change(thresholds.size() + 1);
      std::int64_t right = 0;
      for (std::int64_t i = begins[f]; i < begins[f + 1]; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const auto behind = std::upper_bound(thresholds.begin(), thresholds.end(), distances[at]);
        change[static_cast<std::size_t>(behind - thresholds.begin())] += same[at] ? 1 : -1;
        right += same[at] ? 0 : 1;
      }
      for (std::size_t t = 0; t < thresholds.size(); ++t) {
        right += change[t];
        counts_[f][t] = right;
        all_[t] += right;
      }
    }
  }

  std::size_t folds() const { return counts_.size(); }
  /// The first threshold at which all folds but one are right most often; of a single fold, it.
  std::size_t best_without(std::size_t fold) const {
    const bool single = counts_.size() == 1;
    std::size_t best = 0;
    std::int64_t most = -1;
    for (std::size_t t = 0; t < all_.size(); ++t) {
      const std::int64_t right = all_[t] - (single ? 0 : counts_[fold][t]);
      if (right > most) {
        most = right;
        best = t;
      }
    }
    return best;
  }
  std::int64_t right(std::size_t fold, std::size_t threshold) const {
    return counts_[fold][threshold];
  }

 private:
  std::vector<std::vector<std::int64_t>> counts_;
  std::vector<std::int64_t> all_;
};

FoldedAccuracy accuracy_at(std::span<const double> distances, const std::vector<bool>& same,
                           const std::vector<double>& thresholds) {
  const std::vector<std::int64_t> begins = fold_begins(std::ssize(distances));
  const RightCounts counts(distances, same, thresholds, begins);
  std::vector<double> accuracies;
  for (std::size_t f = 0; f < counts.folds(); ++f) {
    accuracies.push_back(static_cast<double>(counts.right(f, counts.best_without(f))) /
                         static_cast<double>(begins[f + 1] - begins[f]));
  }
  const auto folds = static_cast<double>(accuracies.size());
  FoldedAccuracy result;
  result.mean = std::accumulate(accuracies.begin(), accuracies.end(), 0.0) / folds;
  double squares = 0;
  for (const double accuracy : accuracies) {
    squares += (accuracy - result.mean) * (accuracy - result.mean);
  }
  result.deviation = std::sqrt(squares / folds);
  return result;
}

std::vector<double> grid() {
  std::vector<double> thresholds;
  for (int i = 0; i < kSteps; ++i) thresholds.push_back(i * kThresholdStep);
  return thresholds;
}

/// 0, the middles, and above all.
std::vector<double> middles(std::vector<double> distances) {
  std::sort(distances.begin(), distances.end());
  distances.erase(std::unique(distances.begin(), distances.end()), distances.end());
  std::vector<double> thresholds{0};
  for (std::size_t i = 0; i + 1 < distances.size(); ++i) {
    thresholds.push_back(distances[i] + (distances[i + 1] - distances[i]) / 2);
  }
  thresholds.push_back(distances.back() + 1);
  return thresholds;
}

std::vector<RocPoint> roc_of(const std::vector<double>& same, const std::vector<double>& others) {
  if (same.empty() || others.empty()) return {};
  std::vector<RocPoint> roc{{}};
  const auto share = [](std::size_t some, std::size_t all) {
    return static_cast<double>(some) / static_cast<double>(all);
  };
  for (std::size_t s = 0, o = 0; s < same.size() || o < others.size();) {
    const bool of_same = o == others.size() || (s < same.size() && same[s] <= others[o]);
    const double distance = of_same ? same[s] : others[o];
    while (s < same.size() && same[s] == distance) ++s;
    while (o < others.size() && others[o] == distance) ++o;
    const double next = std::min(s < same.size() ? same[s] : distance + 2,
                                 o < others.size() ? others[o] : distance + 2);
    roc.push_back(
        {distance + (next - distance) / 2, share(o, others.size()), share(s, same.size())});
  }
  return roc;
}

}  // namespace

VerificationFigures figures_of(std::span<const double> distances, const std::vector<bool>& same) {
  require(!distances.empty() && distances.size() == same.size(), "verification",
          "there is a distance for each answer, and one at least");
  require(std::ranges::all_of(distances, [](double d) { return std::isfinite(d); }), "verification",
          "every distance is finite");
  std::vector<double> of_same, of_others;
  for (std::size_t i = 0; i < distances.size(); ++i) {
    (same[i] ? of_same : of_others).push_back(distances[i]);
  }
  std::sort(of_same.begin(), of_same.end());
  std::sort(of_others.begin(), of_others.end());
  VerificationFigures figures{.pairs = std::ssize(distances), .same = std::ssize(of_same)};
  figures.grid = accuracy_at(distances, same, grid());
  figures.exact = accuracy_at(distances, same, middles({distances.begin(), distances.end()}));
  figures.roc = roc_of(of_same, of_others);
  for (std::size_t i = 0; i < kFalseAccepts.size(); ++i) {
    const std::int64_t allowed = std::ssize(of_others) / kFalseAccepts[i];
    if (allowed < 1 || of_same.empty()) continue;
    const double threshold = of_others[static_cast<std::size_t>(allowed)];
    const auto below = std::lower_bound(of_same.begin(), of_same.end(), threshold);
    figures.true_accepts[i] =
        static_cast<double>(below - of_same.begin()) / static_cast<double>(of_same.size());
  }
  return figures;
}

std::vector<double> pair_distances(std::span<const double> embeddings, std::int64_t width,
                                   Lengths& lengths) {
  constexpr double kShortest = 1e-12;
  const auto columns = static_cast<std::size_t>(width);
  std::vector<double> distances;
  const auto length_of = [&](std::span<const double> row) {
    double squares = 0;
    for (const double value : row) squares += value * value;
    const double length = std::sqrt(squares);
    ++lengths.rows;
    lengths.sum += length;
    lengths.zeros += length < kShortest ? 1 : 0;
    return std::max(length, kShortest);
  };
  for (std::size_t at = 0; at + 2 * columns <= embeddings.size(); at += 2 * columns) {
    const auto a = embeddings.subspan(at, columns), b = embeddings.subspan(at + columns, columns);
    const double of_a = length_of(a), of_b = length_of(b);
    double distance = 0;
    for (std::size_t c = 0; c < columns; ++c) {
      const double difference = a[c] / of_a - b[c] / of_b;
      distance += difference * difference;
    }
    distances.push_back(distance);
  }
  return distances;
}

}  // namespace ringlet::train
