// Finding where a broken number (NaN or infinite) came from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/files/state.h"
#include "train/loop/ranks.h"
#include "train/loop/replica.h"
#include "train/loop/stage_link.h"
#include "train/loop/train_step.h"
#include "train/setup/run_setup.h"

namespace ringlet::train {

/// What a rank has found.
struct FirstBroken {
  /// How many values had been looked at before: 0 of a parameter. What is broken on one rank breaks
  /// what others compute of it, but later.
  std::int64_t before = 0;
  std::string where;  ///< in words; empty: there are none
};

/// As a text for other ranks, and back.
std::string to_text(const FirstBroken& found);
FirstBroken first_broken_of(const std::string& text);

/// Runs this rank's part of `step` forward again, from the parameters as they are, and says in
/// words which parameter, input or layer's output is the first with numbers that are not finite.
/// Where rows are cut over the ranks of `axis`, all ranks call it together, where batch norm has
/// statistics of the `world`, and where the model is cut into stages, which `link` joins.
FirstBroken find_first_nonfinite(Replica& replica, const RunSetup& setup, const Ranks& ranks,
                                 std::int64_t step, DataAxis* axis, WorldStatistics* world,
                                 StageLink* link);

/// The last loss of this start of the run that was a number: the mean over the step's samples.
struct GoodLoss {
  double loss = 0;
  std::int64_t step = 0;  ///< from 1; 0: there was none
};

/// Throws the NumbersError that ends the run; `findings` of all ranks, as texts.
[[noreturn]] void throw_nonfinite_loss(double loss, const GoodLoss& last, const RunSetup& setup,
                                       std::int64_t step, const std::vector<std::string>& findings);

/// Throws the NumbersError that ends a run whose test, after `step` steps, has a loss that is no
/// number.
void require_finite_test(const Evaluation& test, const GoodLoss& last, const RunSetup& setup,
                         std::int64_t step);

/// Throws the NumbersError that ends a run whose loss is finite while the gradient, which travelled
/// as f16 or bf16, is not.
[[noreturn]] void throw_overflown_gradient(double loss, const RunSetup& setup, std::int64_t step);

/// Throws the NumbersError that ends a run whose last steps under f16, up to `step`, were all
/// skipped.
[[noreturn]] void throw_many_skips(const StepSums& sums, const RunSetup& setup, std::int64_t step);

/// Says in words which parameter is the first whose gradient, in arena 0, has numbers that are not
/// finite; empty if none is, as a later step's gradient may have replaced it.
std::string find_nonfinite_gradient(Replica& replica);

/// Throws the NumbersError that ends a run whose gradient cannot be clipped; `finding` of the
/// above. The gradient is the same on all ranks, but for rows that are cut over them.
[[noreturn]] void throw_nonfinite_gradient(double norm, const std::string& finding,
                                           const RunSetup& setup, std::int64_t step);

/// Throws NumbersError naming the first parameter or buffer of `state`, or part of the optimiser's
/// state, with numbers that are not finite: such a state must not replace the former one. `step`:
/// steps done.
void require_finite(const HostState& state, const nn::Registry& registry, std::int64_t step);

}  // namespace ringlet::train
