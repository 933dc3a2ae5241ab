// Would another device pay? What one replica more is predicted to give, and what limits it.
//
// A step of p replicas takes
//
//   fixed         t(p) = W share(p) / batch + R + S (p - p0)
//   per replica   t(p) = R + C [p > p0]     + S (p - p0)
//
// W is work that is shared out, R what each replica does whole, C what meeting costs at all, and S
// what each further replica adds; none is negative. They are fitted by least squares, where each
// row weighs by its own time. Two rows cannot tell C or R from S. So it is fitted in up to three
// ways: with S left out (what hinders stays as it is), with R or C left out (all of it grows), and
// from three rows on with all of them. The prediction goes on from the largest row as it was
// measured:
//
//   t(p + 1) = measured t(p) + fitted t(p + 1) - fitted t(p)
//
// Its interval holds those of all ways (bootstrap of the rounds), so it is as wide as the ways
// differ. It never says that a replica adds more than itself.
//
// It holds for devices like those that were measured, one replica on each: rows whose replicas
// share processors say nothing of it. Nor do rows that do not count, or whose layout the next
// number of replicas would not have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/training/scaling.h"

namespace ringlet::bench {

/// A device pays if it adds half of what it could, and hardly if less.
inline constexpr double kPays = 0.5;
/// Adding less than this of it is nothing.
inline constexpr double kNothing = 0.1;

enum class Pays : std::uint8_t { yes, hardly, no, unknown };
const char* name_of(Pays pays);

struct ScalingForecast {
  Pays pays = Pays::unknown;
  std::string why{};  ///< of unknown, and of a no that needs no prediction
  int from = 0;       ///< the largest number of replicas that the prediction goes on from
  Estimate gain{};    ///< of from + 1 replicas: samples a second over those of `from`
  double most = 0;    ///< the gain of a replica that adds all of itself
  /// Of a step of `from` replicas: seconds beyond its share of the smallest row's, and most of all
  /// which part. Nothing where parts are not seen or next to nothing is lost.
  double lost = 0, largest = 0;
  std::string limit{};  ///< "sums that are not hidden"
};

/// `rows`: as measure_scaling() leaves them. `next_layout`: what a replica more would have than the
/// largest number that shares nothing.
ScalingForecast forecast_of(const std::vector<ScalingRow>& rows, BatchRule rule,
                            ringlet::Layout next_layout);

/// The row that a forecast goes on from: the largest whose replicas share nothing; null: none.
const ScalingRow* largest_unshared(const std::vector<ScalingRow>& rows);

/// "yes: 3 replicas are predicted to give 1.41 times the samples/s of 2 (1.38 to 1.43, of 1.50 at
/// most)", or "it cannot be said: the row of 2 does not count".
std::string answer_words(const ScalingForecast& forecast);
/// "0.6 of the 1.2 ms that a step loses: synchronization that is not hidden"; may be empty.
std::string limit_words(const ScalingForecast& forecast);
/// "would another device pay here? " and both: one sentence.
std::string in_words(const ScalingForecast& forecast);

/// Coefficients, none of them negative, of the sum of terms that comes closest to `seconds`, each
/// of which weighs by its own size. `terms`: a list for each of `seconds`, of equally many.
std::vector<double> fit_terms(const std::vector<std::vector<double>>& terms,
                              const std::vector<double>& seconds);

}  // namespace ringlet::bench
