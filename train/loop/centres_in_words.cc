#include "train/loop/centres_in_words.h"

#include <fmt/format.h>

#include <cmath>

#include "nn/ops/margin_softmax.h"
#include "train/telemetry/console.h"

namespace ringlet::train {

namespace {

constexpr std::int64_t kBytes = 4;  // of a number

/// Exact mode makes products that it does not keep of the whole step once more, for the centres.
std::string logits_in_words(const nn::AxisPosition& along, std::int64_t samples,
                            std::int64_t rows) {
  const bool exact = along.shards > 0;
  if (nn::keeps_products(exact ? samples * along.passes() : samples, rows)) {
    return "a step's logits are kept";
  }
  const bool thrice = exact && !nn::keeps_products(samples, rows);
  return fmt::format("a step's logits are computed {}, {} classes at a time",
                     thrice ? "three times" : "twice", with_commas(nn::kClassesOfBlock));
}

}  // namespace

std::string centres_in_words(const nn::Parameters& parameters, std::span<const StateArena> state,
                             std::int64_t samples) {
  const nn::Plan& plan = parameters.plan();
  const nn::PlannedParameter& centres = plan.parameters.back();
  std::int64_t numbers = centres.shape.count() + centres.gradient().count();
  std::string names = "gradient";
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (state[i].is_of_buffers()) continue;
    numbers += state[i].is_of_parameters() ? centres.shape.count() : centres.shape[0];
    names += (i + 1 < state.size() ? ", " : " and ") + state[i].name;
  }
  const std::int64_t classes =
      parameters.registry().parameters[static_cast<std::size_t>(centres.id)]->shape[0];
  std::string words = fmt::format("{} centres of {}", with_commas(classes), centres.shape[1]);
  if (centres.shape[0] < classes) {
    words += fmt::format(", up to {} a replica", with_commas(centres.shape[0]));
  }
  words += fmt::format(", {:.1f} MB with {}; ", static_cast<double>(kBytes * numbers) / 1e6, names);
  return words + logits_in_words(parameters.registry().along, samples, centres.gradient()[0]);
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
