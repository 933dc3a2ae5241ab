// What came of a set of pairs, and the tables that are written of several.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/verification/figures.h"

namespace ringlet::train {

struct Verified {
  std::string name;  ///< of the pairs
  VerificationFigures figures;
  double mean_length = 0;            ///< XNorm
  std::int64_t zero_embeddings = 0;  ///< without a length, of 2 a pair
  std::vector<double> distances{};   ///< of the pairs, in the order of their file
  std::vector<bool> same{};          ///< whether they are of the same identity
};

/// "0.99700+-0.00269", as InsightFace has it.
std::string in_words(const FoldedAccuracy& accuracy);

/// roc.csv: set,threshold,false_accept_rate,true_accept_rate. A name with a comma is in quotes.
std::string roc_table(const std::vector<Verified>& sets);

/// distances.csv: set,pair,same,distance. Pairs count from 0; same is 1 or 0.
std::string distance_table(const std::vector<Verified>& sets);

}  // namespace ringlet::train
