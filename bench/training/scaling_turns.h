// The rounds of `ringlet bench train --replicas 1,2,4`: numbers of replicas in turns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "bench/training/scaling.h"
#include "comm/core/group.h"
#include "train/setup/run_setup.h"

namespace ringlet::bench {

/// Measures a round of rows[row]: `warm_up` steps, and then `steps` with the clock. Gives what each
/// rank saw. Throws Stopped.
using RoundOf = std::function<std::vector<RankRound>(std::size_t row, std::int64_t warm_up,
                                                     std::int64_t steps)>;

struct ScalingPlan {
  std::int64_t steps = 0;    ///< of each row, over all its rounds
  std::int64_t warm_up = 0;  ///< steps before each round
  double budget_seconds = 0;
  /// Hears before the rounds about how long they will take.
  std::function<void(double seconds)> begins{};
};

/// Measures the rows, which say what they are, and judges them. A row that other work disturbs is
/// measured again, in turns with others of that kind, while the budget has room for all its rounds;
/// of its measurements one that counts stays, else the quicker one.
void measure_scaling(std::vector<ScalingRow>& rows, const ScalingPlan& plan, const RoundOf& round);

/// A round of the ranks that this process has: all of them with a LocalGroup. Throws Stopped.
std::vector<RankRound> measure_round(comm::Group& group, const train::RunSetup& setup,
                                     std::int64_t warm_up, std::int64_t steps);

}  // namespace ringlet::bench
