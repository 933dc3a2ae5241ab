#include "bench/training/scaling_forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "bench/all_reduce/judgement.h"

namespace ringlet::bench {

namespace {

using Terms = std::vector<double>;

constexpr double kNextToNothing = 0.03;  // of a step: no loss worth a name

/// Where on its way through the model a number of replicas is.
struct At {
  double share = 1;  ///< of the batch, of the replica that has the most
  double further = 0;
};

At at(const ScalingRow& row, const ScalingRow& base) {
  return {static_cast<double>(row.share()) / static_cast<double>(row.batch),
          static_cast<double>(row.replicas - base.replicas)};
}

/// A way to fit: which terms a number of replicas has.
using Way = Terms (*)(const At& at);

std::vector<Way> ways_of(BatchRule rule, std::size_t rows) {
  std::vector<Way> ways;
  if (rule == BatchRule::fixed) {
    ways = {[](const At& at) {
              return Terms{at.share, 1};
            },
            [](const At& at) {
              return Terms{at.share, at.further};
            }};
    if (rows > 2) ways.push_back([](const At& at) { return Terms{at.share, 1, at.further}; });
  } else {
    ways = {[](const At& at) {
              return Terms{1, at.further > 0 ? 1.0 : 0.0};
            },
            [](const At& at) {
              return Terms{1, at.further};
            }};
    if (rows > 2) {
      ways.push_back([](const At& at) { return Terms{1, at.further > 0 ? 1.0 : 0.0, at.further}; });
    }
  }
  return ways;
}

/// The solution of symmetric equations by elimination, in place; empty where they have none.
Terms solve(std::vector<Terms> rows, Terms right) {
  const std::size_t n = right.size();
  for (std::size_t i = 0; i < n; ++i) {
    if (!(rows[i][i] > 1e-12)) return {};
    for (std::size_t k = i + 1; k < n; ++k) {
      const double factor = rows[k][i] / rows[i][i];
      for (std::size_t j = i; j < n; ++j) rows[k][j] -= factor * rows[i][j];
      right[k] -= factor * right[i];
    }
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = i + 1; j < n; ++j) right[i] -= rows[i][j] * right[j];
    right[i] /= rows[i][i];
  }
  return right;
}

/// The least squares of these terms alone, of relative errors.
Terms fit_some(const std::vector<Terms>& terms, const Terms& seconds,
               const std::vector<std::size_t>& some) {
  std::vector<Terms> normal(some.size(), Terms(some.size()));
  Terms right(some.size());
  for (std::size_t row = 0; row < seconds.size(); ++row) {
    for (std::size_t i = 0; i < some.size(); ++i) {
      const double term = terms[row][some[i]] / seconds[row];
      right[i] += term;
      for (std::size_t k = 0; k < some.size(); ++k) {
        normal[i][k] += term * terms[row][some[k]] / seconds[row];
      }
    }
  }
  // Of seconds, the numbers above are large or small with the unit: bring the diagonal to 1.
  Terms scale(some.size());
  for (std::size_t i = 0; i < some.size(); ++i) {
    if (!(normal[i][i] > 0)) return {};
    scale[i] = 1 / std::sqrt(normal[i][i]);
  }
  for (std::size_t i = 0; i < some.size(); ++i) {
    right[i] *= scale[i];
    for (std::size_t k = 0; k < some.size(); ++k) normal[i][k] *= scale[i] * scale[k];
  }
  Terms solution = solve(std::move(normal), std::move(right));
  for (std::size_t i = 0; i < solution.size(); ++i) solution[i] *= scale[i];
  return solution;
}

double sum_of(const Terms& terms, const Terms& coefficients) {
  double sum = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) sum += terms[i] * coefficients[i];
  return sum;
}

/// What a prediction needs of the rows that it is fitted to.
struct Fitted {
  std::vector<const ScalingRow*> rows;
  std::vector<At> places;
  At last, next;
  double most = 1;      // of the gain
  double shortest = 1;  // a step of one more, over one of the last, without any loss
};

Terms fit_way(Way way, const Fitted& fitted, std::span<const double> steps) {
  std::vector<Terms> terms;
  for (const At& place : fitted.places) terms.push_back(way(place));
  return fit_terms(terms, {steps.begin(), steps.end()});
}

/// The gain of one replica more by one way, of such steps of the rows.
double gain_by(Way way, const Fitted& fitted, std::span<const double> steps) {
  const Terms coefficients = fit_way(way, fitted, steps);
  const double before = steps.back();
  const double after =
      before + sum_of(way(fitted.next), coefficients) - sum_of(way(fitted.last), coefficients);
  const double shortest = before * fitted.shortest;
  return fitted.most * shortest / std::max(after, shortest);
}

/// Whether what it fits lies within the interval of each row.
bool hits(Way way, const Fitted& fitted) {
  std::vector<double> steps;
  for (const ScalingRow* row : fitted.rows) steps.push_back(row->step_seconds());
  const Terms coefficients = fit_way(way, fitted, steps);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double rate =
        static_cast<double>(fitted.rows[i]->batch) / sum_of(way(fitted.places[i]), coefficients);
    if (rate < fitted.rows[i]->rate.low || rate > fitted.rows[i]->rate.high) return false;
  }
  return true;
}

/// In the middle what all terms together say, or of two rows what lies between the ways.
Estimate gain_of(BatchRule rule, const Fitted& fitted) {
  std::vector<Way> ways = ways_of(rule, fitted.rows.size());
  if (ways.size() > 2) {  // three rows can tell a way wrong; that of all terms stays
    const auto all_terms = ways.end() - 1;
    ways.erase(std::remove_if(ways.begin(), all_terms, [&](Way way) { return !hits(way, fitted); }),
               all_terms);
  }
  Estimate all{0, std::numeric_limits<double>::infinity(), 0};
  double product = 1;
  for (const Way way : ways) {
    const Estimate one = resampled(
        fitted.rows, [&](std::span<const double> steps) { return gain_by(way, fitted, steps); });
    all.low = std::min(all.low, one.low);
    all.high = std::max(all.high, one.high);
    all.value = one.value;
    product *= one.value;
  }
  if (fitted.rows.size() == 2) all.value = std::sqrt(product);
  return all;
}

Pays judged(const Estimate& gain, double most) {
  const auto added = [&](double ratio) { return (ratio - 1) / (most - 1); };
  if (added(gain.low) >= kPays) return Pays::yes;
  if (added(gain.high) < kNothing) return Pays::no;
  return added(gain.high) < kPays ? Pays::hardly : Pays::unknown;
}

std::string cause_of(const ScalingPart& part, BatchRule rule, const ScalingRow& last) {
  if (part.seconds == &ScalingParts::compute) {
    return rule == BatchRule::fixed
               ? fmt::format("forward and backward, which {} samples a replica do not shrink to",
                             last.share())
               : std::string("forward and backward, where replicas disturb each other");
  }
  if (part.seconds == &ScalingParts::sums) return "synchronization that is not hidden";
  if (part.seconds == &ScalingParts::waiting) return "waiting for the slowest replica";
  if (part.seconds == &ScalingParts::data) return "waiting for data";
  if (part.seconds == &ScalingParts::update) return "the optimizer, which does not shrink";
  return "what lies between the parts of a step";
}

void name_limit(ScalingForecast& forecast, BatchRule rule, const ScalingRow& base,
                const ScalingRow& last) {
  if (!base.sees_parts() || !last.sees_parts()) return;
  const double share = at(last, base).share / at(base, base).share;
  const double shrunk = rule == BatchRule::fixed ? share : 1;
  forecast.lost = last.parts.step() - base.parts.step() * shrunk;
  if (forecast.lost < kNextToNothing * last.parts.step()) return;
  for (const ScalingPart& part : kScalingParts) {
    const double lost = last.parts.*part.seconds - base.parts.*part.seconds * shrunk;
    if (lost <= forecast.largest) continue;
    forecast.largest = lost;
    forecast.limit = cause_of(part, rule, last);
  }
}

/// Why nothing can be predicted from these rows; "" where it can.
std::string obstacle(const std::vector<const ScalingRow*>& rows, const ScalingRow* last,
                     ringlet::Layout next_layout) {
  if (last == nullptr) return "no number of replicas had processors of its own";
  if (!last->counts()) {
    return fmt::format("the row of {} does not count", last->replicas);
  }
  if (!last->rate.has_interval()) {
    return fmt::format("so few steps make no rounds; {} or more do", 2 * kFewestJudged);
  }
  if (last->layout != next_layout) {
    return fmt::format("with {} replicas the samples of each would lie in another layout, {}",
                       last->replicas + 1, name_of(next_layout));
  }
  if (rows.size() >= 2) return "";
  return fmt::format(
      "{} is the only number of replicas that counts, has processors of its own and the layout "
      "that one more would have",
      last->replicas);
}

}  // namespace

const char* name_of(Pays pays) {
  switch (pays) {
    case Pays::yes:
      return "yes";
    case Pays::hardly:
      return "hardly";
    case Pays::no:
      return "no";
    case Pays::unknown:
      break;
  }
  return "unknown";
}

std::vector<double> fit_terms(const std::vector<std::vector<double>>& terms,
                              const std::vector<double>& seconds) {
  const std::size_t count = terms.front().size();
  Terms best(count);
  double least = std::numeric_limits<double>::infinity();
  // With a coefficient at its bound of 0 its term is left out: of few terms, all ways are tried.
  for (unsigned subset = 1; subset < 1U << count; ++subset) {
    std::vector<std::size_t> some;
    for (std::size_t i = 0; i < count; ++i) {
      if ((subset >> i & 1U) != 0) some.push_back(i);
    }
    const Terms solution = fit_some(terms, seconds, some);
    if (solution.empty() || *std::min_element(solution.begin(), solution.end()) < 0) continue;
    Terms coefficients(count);
    for (std::size_t i = 0; i < some.size(); ++i) coefficients[some[i]] = solution[i];
    double squares = 0;
    for (std::size_t row = 0; row < seconds.size(); ++row) {
      const double off = sum_of(terms[row], coefficients) / seconds[row] - 1;
      squares += off * off;
    }
    if (squares >= least) continue;
    least = squares;
    best = coefficients;
  }
  return best;
}

const ScalingRow* largest_unshared(const std::vector<ScalingRow>& rows) {
  const auto found =
      std::find_if(rows.rbegin(), rows.rend(), [](const ScalingRow& row) { return !row.shares; });
  return found == rows.rend() ? nullptr : &*found;
}

ScalingForecast forecast_of(const std::vector<ScalingRow>& rows, BatchRule rule,
                            ringlet::Layout next_layout) {
  ScalingForecast forecast;
  const ScalingRow* last = largest_unshared(rows);
  if (last != nullptr) forecast.from = last->replicas;
  if (last != nullptr && rule == BatchRule::fixed && last->batch <= last->replicas) {
    forecast.pays = Pays::no;
    forecast.why = fmt::format("a batch of {} has no sample for one more replica", last->batch);
    return forecast;
  }
  Fitted fitted;
  for (const ScalingRow& row : rows) {
    if (row.counts() && !row.shares && row.layout == next_layout) fitted.rows.push_back(&row);
  }
  forecast.why = obstacle(fitted.rows, last, next_layout);
  if (!forecast.why.empty()) return forecast;
  const ScalingRow& base = *fitted.rows.front();
  ScalingRow next{.replicas = last->replicas + 1, .batch = last->batch};
  const double more = static_cast<double>(next.replicas) / last->replicas;
  if (rule == BatchRule::per_replica) next.batch = last->share() * next.replicas;
  for (const ScalingRow* row : fitted.rows) fitted.places.push_back(at(*row, base));
  fitted.last = at(*last, base);
  fitted.next = at(next, base);
  fitted.shortest = rule == BatchRule::fixed ? fitted.next.share / fitted.last.share : 1;
  fitted.most = rule == BatchRule::fixed ? 1 / fitted.shortest : more;
  forecast.most = fitted.most;
  name_limit(forecast, rule, base, *last);
  if (fitted.most <= 1) {
    forecast.pays = Pays::no;
    forecast.why =
        fmt::format("the replica that has the most would still have {} samples", next.share());
    return forecast;
  }
  forecast.gain = gain_of(rule, fitted);
  forecast.pays = judged(forecast.gain, fitted.most);
  return forecast;
}

std::string answer_words(const ScalingForecast& forecast) {
  const std::string pays =
      forecast.pays == Pays::unknown ? "it cannot be said" : name_of(forecast.pays);
  if (forecast.gain.value == 0) return pays + ": " + forecast.why;
  return fmt::format(
      "{}: {} replicas are predicted to give {:.2f} times the samples/s of {} ({:.2f} to {:.2f}, "
      "of {:.2f} at most)",
      pays, forecast.from + 1, forecast.gain.value, forecast.from, forecast.gain.low,
      forecast.gain.high, forecast.most);
}

std::string limit_words(const ScalingForecast& forecast) {
  if (forecast.limit.empty()) return "";
  return fmt::format("{:.3g} of the {:.3g} ms that a step loses: {}", 1e3 * forecast.largest,
                     1e3 * forecast.lost, forecast.limit);
}

std::string in_words(const ScalingForecast& forecast) {
  const std::string limit = limit_words(forecast);
  return "would another device pay here? " + answer_words(forecast) +
         (limit.empty() ? "" : "; " + limit);
}

}  // namespace ringlet::bench
