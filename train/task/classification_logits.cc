#include "train/task/classification_logits.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/unsigned_nan.h"

namespace ringlet::train {

namespace {

/// log(sum exp(logits)), its largest term taken out.
double log_sum(std::span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

std::span<const float> sample(std::span<const float> logits, std::int64_t index,
                              std::int64_t classes) {
  return logits.subspan(static_cast<std::size_t>(index * classes),
                        static_cast<std::size_t>(classes));
}

}  // namespace

std::vector<Guess> likeliest(std::span<const float> logits, std::size_t count) {
  std::vector<std::int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](std::int64_t k) { return logits[static_cast<std::size_t>(k)]; };
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return logit(a) > logit(b) || (std::isnan(logit(b)) && !std::isnan(logit(a)));
  });
  order.resize(std::min(count, order.size()));
  const double all = log_sum(logits);
  std::vector<Guess> guesses;
  for (const std::int64_t k : order) {
    guesses.push_back({k, unsigned_nan(std::exp(logit(k) - all))});
  }
  return guesses;
}

std::int64_t first_nonfinite(std::span<const float> logits, std::int64_t classes) {
  const auto broken =
      std::find_if_not(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); });
  return broken == logits.end() ? -1 : (broken - logits.begin()) / classes;
}

Judge::Judge(std::int64_t classes) { sums_.numbers.resize(static_cast<std::size_t>(2 * classes)); }

void Judge::add(std::span<const float> logits, std::span<const std::int32_t> labels) {
  const std::int64_t classes = std::ssize(sums_.numbers) / 2;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::int32_t label = labels[i];
    require(label >= 0 && label < classes, "judge", "a label lies outside the classes");
    const auto mine = sample(logits, static_cast<std::int64_t>(i), classes);
    const auto best = std::max_element(mine.begin(), mine.end()) - mine.begin();
    double* const count = &sums_.numbers[static_cast<std::size_t>(2 * label)];
    ++count[0];
    ++sums_.samples;
    sums_.loss += log_sum(mine) - mine[static_cast<std::size_t>(label)];
    if (best != label) continue;
    ++count[1];
    ++sums_.right;
  }
}

Evaluation Judge::result() const {
  Evaluation result = sums_;
  if (result.samples > 0) result.loss /= static_cast<double>(result.samples);
  result.loss = unsigned_nan(result.loss);
  return result;
}

Evaluation judge(std::span<const float> logits, std::span<const std::int32_t> labels,
                 std::int64_t classes) {
  Judge judge(classes);
  judge.add(logits, labels);
  return judge.result();
}

}  // namespace ringlet::train
