#include "train/recipe/margin_spec.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <numbers>

#include "base/one_line.h"
#include "kernels/margin_softmax.h"
#include "train/recipe/classification_spec.h"

namespace ringlet::train {

namespace {

constexpr const char* kArcFace = "arcface";
constexpr const char* kCosFace = "cosface";
constexpr const char* kNormFace = "normface";
constexpr const char* kCombined = "combined";

std::vector<std::string> all_losses() {
  std::vector<std::string> names = margin_losses();
  names.insert(names.begin(), kSoftmax);
  return names;
}

/// Empty where `text` is anything else than numbers with commas between.
std::vector<double> margins_in(const std::string& text) {
  std::vector<double> numbers;
  const char *at = text.data(), *end = at + text.size();
  while (true) {
    const auto [stopped, error] = std::from_chars(at, end, numbers.emplace_back());
    if (error != std::errc() || (stopped != end && *stopped != ',')) return {};
    if (stopped == end) return numbers;
    at = stopped + 1;
  }
}

struct Margins {
  double m1 = 1, m2 = 0, m3 = 0;
};

Margins usual_margins(const std::string& loss) {
  if (loss == kArcFace) return {1, 0.5, 0};
  if (loss == kCosFace) return {1, 0, 0.4};
  if (loss == kCombined) return {1, 0.3, 0.2};
  return {};
}

Margins margins_of(const LossSpec& spec) {
  if (spec.margin == "auto") return usual_margins(spec.loss);
  const std::vector<double> numbers = margins_in(spec.margin);
  constexpr std::size_t kThree = 3;
  if (numbers.size() == kThree) return {numbers[0], numbers[1], numbers[2]};
  if (numbers.size() != 1) {
    constexpr std::size_t kShown = 60;
    throw ContractError(
        fmt::format("--margin: {} is neither a number nor three of them with commas between, m1, "
                    "m2 and m3 of cos(m1 theta + m2) - m3",
                    on_one_line(spec.margin, kShown)));
  }
  if (spec.loss == kCosFace) return {1, 0, numbers[0]};
  return {1, numbers[0], 0};
}

/// What makes the other losses is that they have fewer of these numbers.
Margins with_own(const std::string& loss, Margins margins) {
  if (loss == kArcFace) return {1, margins.m2, 0};
  if (loss == kCosFace) return {1, 0, margins.m3};
  if (loss == kNormFace) return {};
  return margins;
}

void require_possible(const std::string& text, const Margins& m) {
  constexpr double kMostTurns = 16;
  const bool holds = m.m1 > 0 && m.m1 <= kMostTurns && m.m2 >= 0 && m.m2 <= std::numbers::pi &&
                     m.m3 >= -1 && m.m3 <= 2;
  if (holds) return;
  throw ContractError(fmt::format(
      "--margin {}: cos(m1 theta + m2) - m3 is for m1 above 0 and up to {:g}, m2 from 0 "
      "to pi (3.1416) and m3 from -1 to 2",
      text, kMostTurns));
}

MarginGuard guard_of(const LossSpec& spec, const Margins& m) {
  if (spec.margin_guard == "none") return MarginGuard::none;
  if (spec.margin_guard == "hard") return MarginGuard::hard;
  if (spec.margin_guard == "smooth") return MarginGuard::smooth;
  if (spec.margin_gradient == "straight") return MarginGuard::none;
  return m.m1 == 1 ? MarginGuard::hard : MarginGuard::smooth;
}

}  // namespace

std::vector<std::string> margin_losses() { return {kArcFace, kCosFace, kNormFace, kCombined}; }

std::vector<Option<LossSpec>> loss_options() {
  using Spec = LossSpec;
  const OnlyWith with_margin{.key = "loss", .values = margin_losses()};
  constexpr double kMostScale = 1000;
  return {
      option("loss", &Spec::loss,
             {.help = "softmax: of logits; the others: of cosines between an embedding and the "
                      "classes' centres, with a margin",
              .choices = all_losses,
              .task = kClassification}),
      option("margin", &Spec::margin,
             {.help = "M of --loss arcface and cosface, M1,M2,M3 of combined: cos(m1 theta + m2) - "
                      "m3 of the sample's own class; auto: 0.5, 0.4 and 1,0.3,0.2",
              .task = kClassification,
              .value_name = "auto|M|M1,M2,M3",
              .only = with_margin}),
      option("scale", &Spec::scale,
             {.help = "that cosines are multiplied by before the softmax",
              .range = above(0).to(kMostScale),
              .task = kClassification,
              .only = with_margin}),
      option("filter", &Spec::filter,
             {.help = "cosines of other classes above it count as 0: for labels that are not all "
                      "right; 0: none do",
              .range = from(0).to(1),
              .task = kClassification,
              .only = with_margin}),
      option("margin_gradient", &Spec::margin_gradient,
             {.help = "that of the margin: exact, or taken for 1 as InsightFace does",
              .choices =
                  [] {
                    return std::vector<std::string>{"exact", "straight"};
                  },
              .task = kClassification,
              .only = with_margin}),
      option("margin_guard", &Spec::margin_guard,
             {.help = "what takes the margin's place at angles where its cosine rises again; auto: "
                      "hard, smooth where m1 is not 1, none with --margin-gradient straight",
              .choices =
                  [] {
                    return std::vector<std::string>{"auto", "none", "hard", "smooth"};
                  },
              .task = kClassification,
              .only = with_margin}),
      option("margin_warmup", &Spec::margin_warmup,
             {.help = "epochs in which the margin grows from none",
              .range = from(0),
              .task = kClassification,
              .only = with_margin}),
      option("embedding_size", &Spec::embedding_size,
             {.help = "numbers of an embedding: outputs of the model",
              .range = from(1).to(65536),
              .task = kClassification,
              .only = with_margin}),
      option(
          "sample_rate", &Spec::sample_rate,
          {.help = "classes that a step compares with: its own, and so many of all others, drawn "
                   "anew in each step; the rows of the others stay as they are",
           .range = from(0).to(1),
           .task = kClassification,
           .only = with_margin}),
      option("class_shards", &Spec::class_shards,
             {.help = "parts of the classes, of each of which as many are drawn; 0: 8, or 64 of "
                      "65,536 classes and more",
              .range = from(0).to(65536),
              .task = kClassification,
              .only = with_margin}),
  };
}

int class_shards_of(const LossSpec& spec, std::int64_t classes) {
  constexpr std::int64_t kMany = 65536;
  constexpr int kFewShards = 8, kManyShards = 64;
  if (spec.class_shards > 0) return spec.class_shards;
  return classes < kMany ? kFewShards : kManyShards;
}

MarginSpec margin_of(const LossSpec& spec) {
  const Margins margins = with_own(spec.loss, margins_of(spec));
  require_possible(spec.margin, margins);
  return {.scale = spec.scale,
          .m1 = margins.m1,
          .m2 = margins.m2,
          .m3 = margins.m3,
          .filter = spec.filter,
          .guard = guard_of(spec, margins),
          .straight = spec.margin_gradient == "straight",
          .warmup_epochs = spec.margin_warmup};
}

std::string in_words(const LossSpec& spec) {
  if (!spec.has_margin()) return {};
  const MarginSpec margin = margin_of(spec);
  std::string words = ", loss " + spec.loss;
  if (spec.loss == kArcFace) words += fmt::format(" with margin {:g}", margin.m2);
  if (spec.loss == kCosFace) words += fmt::format(" with margin {:g}", margin.m3);
  if (spec.loss == kCombined) {
    words += fmt::format(" with margins {:g}, {:g} and {:g}", margin.m1, margin.m2, margin.m3);
  }
  words += fmt::format(", scale {:g}, embeddings of {}", spec.scale, spec.embedding_size);
  if (spec.sample_rate < 1) words += fmt::format(", {:g} of the classes a step", spec.sample_rate);
  if (spec.filter > 0) words += fmt::format(", filter {:g}", spec.filter);
  if (margin.straight) words += ", its gradient straight";
  if (spec.margin_warmup > 0)
    words += fmt::format(", margin from 0 in {:g} epochs", spec.margin_warmup);
  return words;
}

}  // namespace ringlet::train
