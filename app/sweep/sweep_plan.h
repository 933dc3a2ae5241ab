// What `ringlet train --seeds 1,2,3 --sweep lr=0.05,0.1 augment=flip,crop-flip` asks for: every
// combination of values, a setting, with every seed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/error.h"

namespace ringlet::app::sweep {

inline constexpr std::size_t kMaxRuns = 1000;

/// A flag without dashes, and the values that it takes one after the other.
struct Axis {
  std::string key;
  std::vector<std::string> values;
};

struct Run {
  std::size_t setting;  ///< of SweepPlan::settings
  std::string seed;
  std::string folder;  ///< within the sweep's: "lr=0.05,augment=flip,seed=1"
};

struct SweepPlan {
  std::vector<Axis> axes;                          ///< may be none: only seeds differ
  std::vector<std::string> seeds;                  ///< one at least
  std::vector<std::vector<std::string>> settings;  ///< a value for each axis
  std::vector<Run> runs;  ///< seed by seed: all settings are known once before one is known twice
};

/// The text of --sweep or --seeds says no such thing.
class SweepError : public Error {
 public:
  using Error::Error;
};

/// The seeds in "1,2,3" or "1..5". Throws SweepError: one that is no whole number of 64 bits, or
/// that is there twice, or more than kMaxRuns.
std::vector<std::string> seeds_of(const std::string& text);

/// The axis in "lr=0.05,0.1". Values are separated by semicolons where there is one, since some
/// hold commas: "no-decay=none;norm,bias". Throws SweepError: no name, no value, one that is empty
/// or there twice.
Axis axis_of(const std::string& text);

/// Throws SweepError: a key that is there twice, or more than kMaxRuns.
SweepPlan plan_of(std::vector<Axis> axes, std::vector<std::string> seeds);

/// "lr 0.05, augment flip"; "all" where nothing but seeds differs.
std::string name_of(const SweepPlan& plan, std::size_t setting);

/// "lr 0.05, augment flip, seed 1"
std::string name_of(const SweepPlan& plan, const Run& run);

}  // namespace ringlet::app::sweep
