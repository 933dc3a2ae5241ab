// What the last verification of a run has left: the distances of its pairs, OUT/distances.csv
// (train/telemetry/verification_files.h), and the pictures of those that are wrong by most.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "app/report/html.h"
#include "app/report/run_folder.h"
#include "train/verification/figures.h"

namespace ringlet::app::report {

/// A set of pairs.
struct PairDistances {
  std::string name;
  std::vector<double> distances;  ///< by the pairs' numbers
  std::vector<bool> same;
};

/// A pair on the wrong side of the threshold.
struct WrongPair {
  std::int64_t pair = 0;
  bool same = false;    ///< what it is
  double distance = 0;  ///< squared, of the unit embeddings
  double by = 0;        ///< how far from the threshold
};

/// Reads a table's text; `source` is for messages. Throws FileError for one that is none, with its
/// line.
std::vector<PairDistances> parse_distances(std::string_view text, const std::string& source);

/// The table of a run; empty where it has none. Throws FileError as above.
std::vector<PairDistances> distances_of(const RunFolder& run);

/// The threshold of the grid (figures.h) at which most of all pairs are right, the first of them.
double best_threshold(const PairDistances& set);

/// The `keep` that are wrong by most, the worst first; of equals, in their order.
std::vector<WrongPair> worst_of(const PairDistances& set, double threshold, std::size_t keep);

/// The two pictures of each of `pairs`, as the model sees them, as data URIs. Throws Error where
/// the set is not here, or another one than then, or the model is not known.
std::vector<Html> pictures_of(const RunFolder& run, const std::string& set,
                              const std::vector<WrongPair>& pairs);

}  // namespace ringlet::app::report
