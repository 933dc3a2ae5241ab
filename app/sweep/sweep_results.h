// What came of the runs of a sweep: mean and spread of each setting over its seeds, and whether two
// settings differ by more than seeds do.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/sweep/student_t.h"
#include "app/sweep/sweep_plan.h"

namespace ringlet::app::sweep {

enum class Status : std::uint8_t { waiting, done, failed, stopped };

/// Of one run. Figures are those of its last epoch; NAN: it has none.
struct Outcome {
  Status status = Status::waiting;
  int exit_code = 0;
  std::string error{};  ///< its line
  std::int64_t epochs = 0;
  double train_loss = NAN, test_loss = NAN, test_accuracy = NAN;
  double seconds = 0;  ///< of training
};

/// Outcomes[i] is of plan.runs[i].
using Outcomes = std::vector<Outcome>;

/// What settings are compared by: the test accuracy where all runs that are done have it, else the
/// test loss.
struct Figure {
  const char* name;
  double Outcome::*value;
  bool higher_is_better;
  /// "64.52 %" or "1.2345"
  std::string text(double number) const;
};
Figure figure_of(const Outcomes& outcomes);

/// Of the runs of `setting` that are done.
std::vector<double> values_of(const SweepPlan& plan, const Outcomes& outcomes, std::size_t setting,
                              const Figure& figure);

/// The settings that have values, the best mean first.
std::vector<std::size_t> ranking(const SweepPlan& plan, const Outcomes& outcomes,
                                 const Figure& figure);

enum class Verdict : std::uint8_t {
  unknown,   ///< one of both has a single value
  unspread,  ///< no seed differs from another in either: that has no interval
  equal,
  worse
};

/// A setting beside the best one.
struct Comparison {
  std::size_t setting;
  Verdict verdict = Verdict::unknown;
  double behind = 0;        ///< how far its mean is behind the best
  Interval interval{0, 0};  ///< where this lies with 95 % for all settings together, where known
  bool has_interval() const { return verdict == Verdict::equal || verdict == Verdict::worse; }
};

/// Of each of ranking() but the first, in its order. Welch's intervals; that all of them hold at
/// once has 95 % (Bonferroni), or somebody who tries twenty settings would find one that differs.
std::vector<Comparison> comparisons(const SweepPlan& plan, const Outcomes& outcomes,
                                    const Figure& figure);

/// The headline: the best setting and what does not differ from it; of several with the same mean
/// all are named, and none is best. Empty: no run has ended.
std::string answer(const SweepPlan& plan, const Outcomes& outcomes, const Figure& figure);

/// "lr 0.1 and lr 0.05 do not differ: ...": a line for each comparison.
std::string in_words(const SweepPlan& plan, const Figure& figure, std::size_t best,
                     const Comparison& comparison);

/// The table of settings, the verdicts in words, and how many runs failed, as text for a console.
std::string summary(const SweepPlan& plan, const Outcomes& outcomes);

/// sweep.json: plan, runs, settings, comparisons. `flags`: those that all runs have.
nlohmann::json to_json(const SweepPlan& plan, const Outcomes& outcomes,
                       const std::vector<std::string>& flags);

/// A former sweep: what its sweep.json says of its runs, by their folders.
struct FormerSweep {
  std::vector<std::string> flags;
  std::vector<std::pair<std::string, Outcome>> runs;
};
/// Throws FileError where `source`, which holds `text`, is no such file.
FormerSweep former_sweep(const std::string& source, const std::string& text);

}  // namespace ringlet::app::sweep
