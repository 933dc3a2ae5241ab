// Reads logits in host memory: probabilities, the likeliest classes, how often they are right.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/task/evaluation.h"

namespace ringlet::train {

/// A class and how likely the model holds it to be.
struct Guess {
  std::int64_t index = 0;  ///< of the class
  double probability = 0;
  bool operator==(const Guess&) const = default;
};

/// The `count` likeliest classes of one sample by the softmax of `logits` [K], the likeliest first;
/// of equal ones the first class first. All K when count > K. A NaN comes last; where a logit is
/// not finite, probabilities are NaN.
std::vector<Guess> likeliest(std::span<const float> logits, std::size_t count);

/// Index of the first sample of logits [N, K] that has a NaN or an infinity, or -1.
std::int64_t first_nonfinite(std::span<const float> logits, std::int64_t classes);

/// Mean loss and right answers of logits that come in passes, as the evaluator counts them.
class Judge {
 public:
  explicit Judge(std::int64_t classes);
  /// Logits [N, K] for labels [N]. No label may lie outside [0, K).
  void add(std::span<const float> logits, std::span<const std::int32_t> labels);
  Evaluation result() const;

 private:
  Evaluation sums_;  // its loss is a sum
};

/// Those of all at once.
Evaluation judge(std::span<const float> logits, std::span<const std::int32_t> labels,
                 std::int64_t classes);

}  // namespace ringlet::train
