#include "app/sweep/sweep_results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace ringlet::app::sweep {

namespace {

constexpr double kConfidence = 0.95;
constexpr double kRounding = 1e-9;  // of means and deviations

bool is_done(const Outcome& outcome) { return outcome.status == Status::done; }

std::size_t count_of(const Outcomes& outcomes, Status status) {
  return static_cast<std::size_t>(std::count_if(
      outcomes.begin(), outcomes.end(), [&](const Outcome& o) { return o.status == status; }));
}

std::string row_of(const SweepPlan& plan, const Outcomes& outcomes, const Figure& figure,
                   std::size_t setting, std::size_t width) {
  const std::vector<double> values = values_of(plan, outcomes, setting, figure);
  const Spread spread = spread_of(values);
  std::vector<std::string> each;
  for (const double value : values) each.push_back(figure.text(value));
  return fmt::format("{:<{}}  {:>4}  {:>9}  {:>9}  {}\n", name_of(plan, setting), width,
                     values.size(), figure.text(spread.mean),
                     values.size() > 1 ? figure.text(spread.deviation) : "", fmt::join(each, ", "));
}

std::string lines_of_failures(const SweepPlan& plan, const Outcomes& outcomes) {
  std::string text;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const Outcome& outcome = outcomes[i];
    if (outcome.status != Status::failed) continue;
    text += fmt::format("{} failed with code {}: {}\n", name_of(plan, plan.runs[i]),
                        outcome.exit_code, outcome.error);
  }
  return text;
}

}  // namespace

std::string Figure::text(double number) const {
  return higher_is_better ? fmt::format("{:.2f} %", 100 * number) : fmt::format("{:.4f}", number);
}

Figure figure_of(const Outcomes& outcomes) {
  const bool has_accuracy = std::all_of(outcomes.begin(), outcomes.end(), [](const Outcome& o) {
    return !is_done(o) || std::isfinite(o.test_accuracy);
  });
  if (has_accuracy) return {"test accuracy", &Outcome::test_accuracy, true};
  return {"test loss", &Outcome::test_loss, false};
}

std::vector<double> values_of(const SweepPlan& plan, const Outcomes& outcomes, std::size_t setting,
                              const Figure& figure) {
  std::vector<double> values;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const double value = outcomes[i].*figure.value;
    if (plan.runs[i].setting == setting && is_done(outcomes[i]) && std::isfinite(value)) {
      values.push_back(value);
    }
  }
  return values;
}

std::vector<std::size_t> ranking(const SweepPlan& plan, const Outcomes& outcomes,
                                 const Figure& figure) {
  std::vector<std::pair<double, std::size_t>> known;
  for (std::size_t i = 0; i < plan.settings.size(); ++i) {
    const std::vector<double> values = values_of(plan, outcomes, i, figure);
    if (values.empty()) continue;
    const double mean = spread_of(values).mean;
    known.emplace_back(figure.higher_is_better ? -mean : mean, i);
  }
  std::sort(known.begin(), known.end());
  std::vector<std::size_t> settings;
  settings.reserve(known.size());
  for (const auto& entry : known) settings.push_back(entry.second);
  return settings;
}

std::vector<Comparison> comparisons(const SweepPlan& plan, const Outcomes& outcomes,
                                    const Figure& figure) {
  const std::vector<std::size_t> ranked = ranking(plan, outcomes, figure);
  std::vector<Comparison> all;
  if (ranked.size() < 2) return all;
  const Spread best = spread_of(values_of(plan, outcomes, ranked.front(), figure));
  const double sign = figure.higher_is_better ? 1 : -1;
  const double confidence = 1 - (1 - kConfidence) / static_cast<double>(ranked.size() - 1);
  for (auto setting = ranked.begin() + 1; setting != ranked.end(); ++setting) {
    const Spread own = spread_of(values_of(plan, outcomes, *setting, figure));
    Comparison comparison{*setting, Verdict::unknown, sign * (best.mean - own.mean), {0, 0}};
    if (best.count > 1 && own.count > 1 && best.deviation < kRounding &&
        own.deviation < kRounding) {
      comparison.verdict = Verdict::unspread;
    } else if (best.count > 1 && own.count > 1) {
      const Interval interval = difference_of(best, own, confidence);
      comparison.interval = sign > 0 ? interval : Interval{-interval.high, -interval.low};
      comparison.verdict = interval.has_zero() ? Verdict::equal : Verdict::worse;
    }
    all.push_back(comparison);
  }
  return all;
}

std::string answer(const SweepPlan& plan, const Outcomes& outcomes, const Figure& figure) {
  const std::vector<std::size_t> ranked = ranking(plan, outcomes, figure);
  if (ranked.empty()) return {};
  const std::vector<Comparison> all = comparisons(plan, outcomes, figure);
  const std::vector<double> values = values_of(plan, outcomes, ranked.front(), figure);
  const Spread spread = spread_of(values);
  std::vector<std::string> tied{name_of(plan, ranked.front())};
  for (const Comparison& one : all) {
    if (one.behind < kRounding) tied.push_back(name_of(plan, one.setting));
  }
  if (tied.size() > 1) {
    return fmt::format("none is best: {} have the same mean, {}", fmt::join(tied, " and "),
                       figure.text(spread.mean));
  }
  std::string text = fmt::format("{}: {}", tied.front(), figure.text(spread.mean));
  if (values.size() > 1) {
    text += fmt::format(" ± {} ({} seeds)", figure.text(spread.deviation), values.size());
  }
  const auto like = std::count_if(
      all.begin(), all.end(), [](const Comparison& one) { return one.verdict == Verdict::equal; });
  if (like > 0)
    text += fmt::format(", from which {} of {} others {} not differ", like, all.size(),
                        like == 1 ? "does" : "do");
  return text;
}

std::string in_words(const SweepPlan& plan, const Figure& figure, std::size_t best,
                     const Comparison& comparison) {
  const std::string front = name_of(plan, best), other = name_of(plan, comparison.setting);
  const std::string low = figure.text(comparison.interval.low);
  const std::string high = figure.text(comparison.interval.high);
  switch (comparison.verdict) {
    case Verdict::unknown:
      if (comparison.behind < kRounding) {
        return fmt::format(
            "{} and {} have the same mean; whether other seeds would tell them apart is not known: "
            "give --seeds two or more",
            front, other);
      }
      return fmt::format(
          "{} is {} ahead of {}; whether another seed would say so too is not known: give --seeds "
          "two or more",
          front, figure.text(comparison.behind), other);
    case Verdict::unspread:
      if (comparison.behind < kRounding) {
        return fmt::format(
            "{} and {} came out the same with every seed, which says nothing of which is better; "
            "look whether they have learnt at all",
            front, other);
      }
      return fmt::format(
          "{} is {} ahead of {} with every seed; how much of that is chance cannot be told, since "
          "no seed made a difference",
          front, figure.text(comparison.behind), other);
    case Verdict::equal:
      return fmt::format(
          "{} and {} do not differ: their means are {} apart, which seeds alone may do (95 % "
          "interval: {} to {})",
          front, other, figure.text(comparison.behind), low, high);
    case Verdict::worse:
      break;
  }
  return fmt::format("{} is better than {} by {} (95 % interval: {} to {})", front, other,
                     figure.text(comparison.behind), low, high);
}

std::string summary(const SweepPlan& plan, const Outcomes& outcomes) {
  const Figure figure = figure_of(outcomes);
  const std::vector<std::size_t> ranked = ranking(plan, outcomes, figure);
  std::string text;
  if (!ranked.empty()) {
    std::size_t width = std::string("setting").size();
    for (const std::size_t i : ranked) width = std::max(width, name_of(plan, i).size());
    text += fmt::format("{:<{}}  runs  {:>9}  {:>9}  {} by seed\n", "setting", width, "mean",
                        "deviation", figure.name);
    for (const std::size_t i : ranked) text += row_of(plan, outcomes, figure, i, width);
  }
  const std::vector<Comparison> all = comparisons(plan, outcomes, figure);
  if (!all.empty()) text += "\n";
  for (const Comparison& one : all) text += in_words(plan, figure, ranked.front(), one) + "\n";
  text += lines_of_failures(plan, outcomes);
  const std::size_t left =
      count_of(outcomes, Status::waiting) + count_of(outcomes, Status::stopped);
  if (left > 0) text += fmt::format("{} of {} runs are left to do\n", left, outcomes.size());
  return text;
}

}  // namespace ringlet::app::sweep
