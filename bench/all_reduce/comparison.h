// Comparison: measurements of the same work, of one collective, side by side. It has a series for
// each strategy and engine, the cost model that fits it, and the sizes at which each is the
// fastest.
//
// `auto` is no strategy but picks one. It is never the fastest and has no model; it has a regret.
//
// Rows that do not count, and those with wrong results (Measurement::decides), are among the rows
// of a series, and nowhere else. Strategies are equal at a size where the intervals of their
// medians overlap, and where the medians are within kAlike of each other: nothing says which is the
// faster one. A size is open where a row that does not count might have been the fastest: its
// quickest call took no longer than the end of the interval of the fastest row that counts. What
// gives wrong results is not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/all_reduce/measurement.h"
#include "comm/all_reduce/cost_model.h"

namespace ringlet::bench {

/// Where code and memory come to lie changes a time by as much (Mytkowicz and others, "Producing
/// wrong data without doing anything obviously wrong!", 2009), and no repetition in one process
/// shows it.
inline constexpr double kAlike = 1.02;
/// Whether two rows of the same work are equal. Of a row without an interval (of other engines, of
/// older files, of few calls) that is not known, and its median decides: never.
bool are_equal(const Measurement& a, const Measurement& b);

/// The sizes of one strategy, in ascending order.
struct Series {
  std::string label;                 ///< "ring", or "openmpi ring" beside other engines
  std::vector<Measurement> rows{};   ///< at least one
  std::vector<Measurement> curve{};  ///< the quickest of those rows of each size that decide
  std::optional<comm::CostFit> fit;  ///< nothing for a single size
  /// Whether the fit's errors say anything: two numbers go through two points, whatever they are.
  bool knows_error() const { return fit && curve.size() > 2; }
  /// Of the strategy with that name; of one message for names that only other engines have.
  comm::PathCostOf path_cost = comm::cost_of_one_message;
  /// The model's time in seconds; only with a fit.
  double predicted_seconds(double bytes) const;
  /// Whether it is `auto`.
  bool picks() const;
  /// The row of the curve with this size; null where there is none.
  const Measurement* at(std::int64_t bytes) const;
};

/// What a series that picks took, in times of the best strategy of each size over the same
/// transport.
struct Regret {
  std::size_t series = 0;
  double median = 0, worst = 0;  ///< over the sizes
  std::int64_t worst_bytes = 0;
};

/// Sizes at which one series is the fastest, or equal to the fastest. They are as few stretches as
/// cover all sizes that are not open; open ones may lie within.
struct Stretch {
  std::size_t series = 0;         ///< of those that are equal the one with the least medians
  std::int64_t from = 0, to = 0;  ///< measured sizes, both included
  /// Size at which this curve crosses the one before, read off between the measured sizes. Nothing
  /// for the first stretch, and where the curves do not cross there.
  std::optional<double> begins_at{};
  std::vector<std::size_t> equals{};  ///< other series that are so at each of these sizes
};

struct Comparison {
  std::string collective;
  int ranks = 0;
  int machines = 1;
  std::string level = "all";  ///< Measurement::level
  std::string type, op;
  int root = kNoRoot;
  bool in_place = true;
  std::string machine{};  ///< Measurement::machine
  std::vector<Series> series{};
  std::vector<Stretch> fastest{};    ///< by the median; in ascending order
  std::vector<std::int64_t> open{};  ///< sizes at which nothing says which is the fastest
  std::vector<Regret> regrets{};  ///< of the series that pick, where strategies stand beside them
};

/// One for each collective, number of ranks and machines, level, type, operation, root, in place or
/// not, and machine, in the order in which they first come.
std::vector<Comparison> compare(const std::vector<Measurement>& measurements);

/// The same by the fitted models, between the least and the largest measured size. `from` and `to`
/// are then the sizes where the curves cross.
std::vector<Stretch> fastest_by_models(const Comparison& comparison);

/// "ring", or "ring and two-shot", "ring, doubling and two-shot" where they are equal.
std::string names_of(const Stretch& stretch, const Comparison& comparison);
/// "f32 sum in place", which is of all-reduce; else "reduce to rank 0, f32 sum in place".
std::string work_text(const Measurement& row);
std::string work_text(const Comparison& comparison);
/// ", on AMD EPYC, 2 cores"; "" where all rows are of one machine.
std::string where_text(const std::string& machine);
/// Characters of the longest label, but at least those of the table's column.
int label_width(const Comparison& comparison);
/// "auto takes 1.03 times the best strategy's time in the median, at worst 1.41 times (8K)"
std::string to_text(const Regret& regret, const Comparison& comparison);
/// "open, as rows do not count: 16K, 1M"; of a comparison that has such sizes.
std::string open_text(const Comparison& comparison);
/// Lines for people: which is the fastest where, regrets, and the models.
std::string to_text(const Comparison& comparison);
/// "models", "fastest" (with "equal", the strategies that are as fast) and "regrets" of all
/// comparisons.
nlohmann::json models_json(const std::vector<Comparison>& comparisons);
nlohmann::json fastest_json(const std::vector<Comparison>& comparisons);
nlohmann::json regrets_json(const std::vector<Comparison>& comparisons);

/// 5,432 bytes as "5.3K": a size that was not measured but computed.
std::string rough_size(double bytes);

}  // namespace ringlet::bench
