#include <algorithm>
#include <cmath>
#include <utility>

#include "app/report/test_results.h"
#include "base/error.h"

namespace ringlet::app::report {

namespace {

/// Softmax, in double. A row with a NaN is all NaN.
std::vector<double> probabilities_of(const float* logits, std::size_t classes) {
  const double largest = static_cast<double>(*std::max_element(logits, logits + classes));
  std::vector<double> probabilities(classes);
  double sum = 0;
  for (std::size_t k = 0; k < classes; ++k) {
    probabilities[k] = std::exp(static_cast<double>(logits[k]) - largest);
    sum += probabilities[k];
  }
  for (double& probability : probabilities) probability /= sum;
  return probabilities;
}

}  // namespace

std::int64_t TestResults::samples_of(std::int64_t label) const {
  std::int64_t samples = 0;
  for (std::int64_t answer = 0; answer < classes(); ++answer) samples += count(label, answer);
  return samples;
}

std::int64_t TestResults::right() const {
  std::int64_t right = 0;
  for (std::int64_t label = 0; label < classes(); ++label) right += count(label, label);
  return right;
}

TestResults tally(std::shared_ptr<const data::Dataset> images, const std::vector<float>& logits,
                  std::size_t keep) {
  const auto classes = static_cast<std::size_t>(images->target_values());
  const auto labels = images->targets();
  require(logits.size() == classes * labels.size(), "tally", "a row of logits an image is needed");
  TestResults results{.images = std::move(images), .confusion = {}, .worst = {}};
  results.confusion.resize(classes * classes);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto probabilities = probabilities_of(logits.data() + i * classes, classes);
    const auto label = static_cast<std::size_t>(labels[i]);
    const auto answer = static_cast<std::size_t>(
        std::max_element(probabilities.begin(), probabilities.end()) - probabilities.begin());
    ++results.confusion[label * classes + answer];
    if (label == answer) continue;
    results.worst.push_back({static_cast<std::int64_t>(i), labels[i],
                             static_cast<std::int64_t>(answer), probabilities[label],
                             probabilities[answer]});
  }
  std::stable_sort(
      results.worst.begin(), results.worst.end(),
      [](const Mistake& a, const Mistake& b) { return a.label_probability < b.label_probability; });
  if (results.worst.size() > keep) results.worst.resize(keep);
  return results;
}

}  // namespace ringlet::app::report
