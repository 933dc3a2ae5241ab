// Two sides row by row: what became slower, what faster, and what the intervals leave equal.
#pragma once

#include <array>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/compare/side.h"

namespace ringlet::app::compare {

/// A row that both sides have. They agree in all but figure and why_not.
struct Pair {
  Row a, b;
  Figure ratio{};  ///< of b's time to a's: above 1 b is slower
  /// Rows that do not count decide nothing.
  bool counts() const { return a.why_not.empty() && b.why_not.empty(); }
};

/// "unlike machines: A was measured on X, B on Y"
struct Unlike {
  std::string of;  ///< "machines"
  std::string text;
};

struct Comparison {
  Side a, b;
  std::array<std::string, 2> names{};  ///< of the files, by which they can be told apart
  std::vector<Pair> pairs{};           ///< at least one; by group, name and size, as a has them
  std::vector<Row> only_a{}, only_b{};
  std::vector<Unlike> unlike{};
};

/// What one side says and the other does not is unlike, too; what neither says is not known. Throws
/// FileError where the sides are of two kinds, or have no row in common.
Comparison compared(Side a, Side b);

struct Tally {
  std::size_t better = 0, worse = 0, equal = 0, not_counted = 0;
  std::size_t without_interval = 0;    ///< of those that count
  std::optional<std::size_t> worst{};  ///< the worse pair whose ratio is the largest
};
Tally tally_of(const Comparison& comparison);

/// The rows of b with wrong results, whether or not a has them.
std::vector<Row> wrong_rows(const Comparison& comparison);

/// The pairs that count and are worse by more than `limit` (ratio.h), by their indices.
std::vector<std::size_t> beyond(const Comparison& comparison, double limit);

/// "ring 4K", "forward (ms)", or "samples/s of 2 replicas".
std::string name_of(const Row& row);
/// "1.121 to 1.290"
std::string interval_words(const Figure& ratio);
/// "1.203 (1.121 to 1.290)"
std::string text_of_ratio(const Figure& ratio);
/// Four digits of it, and of large ones all; a dash for what is not finite.
std::string text_of_number(double value);
/// "±3.0%": half of the interval; empty where there is none.
std::string text_of_spread(const Figure& figure);
/// "worse", "does not count", "worse; no interval: one measurement each"
std::string verdict_words(const Pair& pair);
/// "2 of 60 rows are worse, most of all ring 4K by 1.203 (1.121 to 1.290)", of "55 rows that count"
/// where others do not.
std::string answer_of(const Comparison& comparison);
/// "1 better, 55 equal, 2 not counted": the other rows; and how many have no interval.
std::string others_of(const Comparison& comparison);
/// What has to be known before the rows are read: unlike things, and missing intervals.
std::vector<std::string> warnings_of(const Comparison& comparison);
/// Why rows do not count, and which rows one side alone has: a line each for many rows.
std::vector<std::string> notes_of(const Comparison& comparison);

/// All of it for a console, in at most 100 columns where names are as long as Ringlet's.
std::string to_text(const Comparison& comparison);
/// The same for programs. `limit`: of --fail-over, if any.
nlohmann::json to_json(const Comparison& comparison, std::optional<double> limit);

}  // namespace ringlet::app::compare
