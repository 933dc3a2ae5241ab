// Evaluation: what a model was measured to do on a data set.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace ringlet::train {

/// A number that a task tells: "mean absolute error" is 0.3.
struct Figure {
  std::string name;
  double value = 0;
  std::string unit{};  ///< "degrees"; may be empty
};

/// Numbers that a training pass tells at most (TaskPass::told).
inline constexpr std::int64_t kTold = 4;

struct Evaluation {
  double loss = 0;  ///< mean over the samples
  std::int64_t samples = 0;
  std::int64_t right = 0;  ///< samples that were answered rightly, of a task that counts them
  std::int64_t without_length = 0;  ///< embeddings that are as near to any class
  std::vector<double> numbers{};    ///< sums over the samples: Task::metric()
  std::vector<Figure> figures{};    ///< of a task that says other things than how many are right
  /// NaN where a task says other figures.
  double accuracy() const {
    if (!figures.empty()) return std::numeric_limits<double>::quiet_NaN();
    return samples == 0 ? 0 : static_cast<double>(right) / static_cast<double>(samples);
  }
};

/// A figure's name as files have it: what is no letter or digit becomes '_'.
inline std::string key_of(const Figure& figure) {
  std::string key = figure.name;
  for (char& c : key) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!plain) c = '_';
  }
  return key;
}

}  // namespace ringlet::train
