#include "train/verification/verified.h"

#include <fmt/format.h>

#include "base/one_line.h"

namespace ringlet::train {

std::string in_words(const FoldedAccuracy& accuracy) {
  return fmt::format("{:.5f}+-{:.5f}", accuracy.mean, accuracy.deviation);
}

std::string roc_table(const std::vector<Verified>& sets) {
  std::string text = "set,threshold,false_accept_rate,true_accept_rate\n";
  for (const Verified& set : sets) {
    for (const RocPoint& point : set.figures.roc) {
      text += fmt::format("{},{},{},{}\n", on_one_line(set.name), point.threshold,
                          point.false_accepts, point.true_accepts);
    }
  }
  return text;
}

std::string distance_table(const std::vector<Verified>& sets) {
  std::string text = "set,pair,same,distance\n";
  for (const Verified& set : sets) {
    for (std::size_t i = 0; i < set.distances.size(); ++i) {
      text += fmt::format("{},{},{},{}\n", on_one_line(set.name), i, set.same[i] ? 1 : 0,
                          set.distances[i]);
    }
  }
  return text;
}

}  // namespace ringlet::train
