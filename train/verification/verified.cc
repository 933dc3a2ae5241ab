#include "train/verification/verified.h"

#include <fmt/format.h>

#include "base/one_line.h"

namespace ringlet::train {

std::string in_words(const FoldedAccuracy& accuracy) {
  return fmt::format("{:.5f}+-{:.5f}", accuracy.mean, accuracy.deviation);
}

namespace {

/// A set's name as a field: in quotes where it holds a comma or quotes (RFC 4180).
std::string field_of(const std::string& name) {
  const std::string line = on_one_line(name);
  if (line.find_first_of(",\"") == line.npos) return line;
  std::string field = "\"";
  for (const char c : line) field += c == '"' ? "\"\"" : std::string(1, c);
  return field + "\"";
}

}  // namespace

std::string roc_table(const std::vector<Verified>& sets) {
  std::string text = "set,threshold,false_accept_rate,true_accept_rate\n";
  for (const Verified& set : sets) {
    const std::string name = field_of(set.name);
    for (const RocPoint& point : set.figures.roc) {
      text += fmt::format("{},{},{},{}\n", name, point.threshold, point.false_accepts,
                          point.true_accepts);
    }
  }
  return text;
}

std::string distance_table(const std::vector<Verified>& sets) {
  std::string text = "set,pair,same,distance\n";
  for (const Verified& set : sets) {
    const std::string name = field_of(set.name);
    for (std::size_t i = 0; i < set.distances.size(); ++i) {
      text += fmt::format("{},{},{},{}\n", name, i, set.same[i] ? 1 : 0, set.distances[i]);
    }
  }
  return text;
}

}  // namespace ringlet::train
