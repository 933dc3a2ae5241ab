#include "train/loop/centres_in_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nn/ops/margin_softmax.h"
#include "train/telemetry/console.h"

namespace ringlet::train {

namespace {

constexpr std::int64_t kBytes = 4;  // of a number

/// In exact mode there is a gradient of each level of the tree, and one of each shard's samples.
std::int64_t gradients_of_rows(const nn::Parameters& parameters) {
  const nn::AxisPosition& along = parameters.registry().along;
  const int of_shards = along.alone() ? 0 : std::max(0, along.shards - 1);
  return parameters.gradient_arenas() + of_shards;
}

}  // namespace

std::string centres_in_words(const nn::Parameters& parameters, std::span<const StateArena> state,
                             std::int64_t samples) {
  const nn::Plan& plan = parameters.plan();
  const nn::PlannedParameter& centres = plan.parameters.back();
  std::int64_t numbers =
      centres.shape.count() + gradients_of_rows(parameters) * centres.gradient().count();
  std::string names = "gradient";
  for (std::size_t i = 0; i < state.size(); ++i) {
    numbers += state[i].rows_of < 0 ? centres.shape.count() : centres.shape[0];
    names += (i + 1 < state.size() ? ", " : " and ") + state[i].name;
  }
  const std::int64_t classes =
      parameters.registry().parameters[static_cast<std::size_t>(centres.id)]->shape[0];
  std::string words = fmt::format("{} centres of {}", with_commas(classes), centres.shape[1]);
  if (centres.shape[0] < classes) {
    words += fmt::format(", up to {} a replica", with_commas(centres.shape[0]));
  }
  words += fmt::format(", {:.1f} MB with {}; ", static_cast<double>(kBytes * numbers) / 1e6, names);
  if (nn::keeps_products(samples, centres.gradient()[0])) {
    return words + "a step's logits are kept";
  }
  return words + fmt::format("a step's logits are computed twice, {} classes at a time",
                             with_commas(nn::kClassesOfBlock));
}

std::string low_scale_in_words(double scale, std::int64_t classes) {
  if (classes < 2) return {};
  constexpr double kProbability = 0.9;
  const auto all = static_cast<double>(classes), others = all - 1;
  const double bound = others / all * std::log(others * kProbability / (1 - kProbability));
  if (scale >= bound) return {};
  const double loss = std::log1p(others * std::exp(-scale * all / others));
  return fmt::format(
      "--scale {:g} is below {:.1f}, NormFace's bound for {} classes of one size: the test loss "
      "cannot get below {:.2f}",
      scale, bound, with_commas(classes), loss);
}

}  // namespace ringlet::train
