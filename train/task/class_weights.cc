#include "train/task/class_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/one_line.h"

namespace ringlet::train {

namespace {

std::vector<float> balanced(const data::Dataset& training) {
  std::vector<double> counts(static_cast<std::size_t>(training.target_values()));
  for (const std::int32_t label : training.targets()) ++counts[static_cast<std::size_t>(label)];
  const auto classes =
      static_cast<double>(std::ranges::count_if(counts, [](double n) { return n > 0; }));
  std::vector<float> weights;
  for (const double count : counts) {
    const double weight = count > 0 ? static_cast<double>(training.size()) / (classes * count) : 0;
    weights.push_back(static_cast<float>(weight));
  }
  return weights;
}

/// Empty where `text` is anything else than numbers with commas between.
std::vector<float> numbers_in(const std::string& text) {
  std::vector<float> numbers;
  const char *at = text.data(), *end = at + text.size();
  while (true) {
    const auto [stopped, error] = std::from_chars(at, end, numbers.emplace_back());
    if (error != std::errc() || (stopped != end && *stopped != ',')) return {};
    if (stopped == end) return numbers;
    at = stopped + 1;
  }
}

}  // namespace

bool is_weight(float weight) {
  constexpr float kLeast = 1e-30F, kMost = 1e30F;
  return weight == 0 || (kLeast <= weight && weight <= kMost);
}

std::vector<float> class_weights(const std::string& text, const data::Dataset& training) {
  if (text == "balanced") return balanced(training);
  std::vector<float> weights = numbers_in(text);
  const auto counts = [](float weight) { return weight > 0; };
  const bool fits = std::ssize(weights) == training.target_values() &&
                    std::ranges::all_of(weights, is_weight) && std::ranges::any_of(weights, counts);
  if (fits) return weights;
  constexpr std::size_t kShown = 60;
  throw ContractError(
      fmt::format("--class-weights: {} is neither equal nor balanced nor {} numbers, each 0 "
                  "or from 1e-30 to 1e30 and not all 0, one for each class, with commas between",
                  on_one_line(text, kShown), training.target_values()));
}

}  // namespace ringlet::train
