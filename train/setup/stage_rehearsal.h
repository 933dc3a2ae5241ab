// The stages of a model at work together, before a run: what their passes, messages and updates
// take then, for the forecast (train/forecast/forecast.h).
//
// Stages on one machine's processors share its memory, its caches and its clock. So a stage is
// slower beside others than alone, and by how much depends on what these do meanwhile. Here all
// ranks run the schedule's own program: threads and devices of their own, the run's classes, as
// many passes held, messages by the transport between threads, sums, the optimiser. The samples are
// noise, the learning rate is 0, and nothing is left of it. The source stands in train/, which
// knows the loop and its threads.
//
// Of each action the median over the steps behind the first counts. The passes of a step are told
// one by one: some meet the other stages at work, others meet them waiting. A message takes from
// when both sides have come until it is there, a mean over the micro-batches; a Sync from when the
// last rank has come; an update from there to the next step.
#pragma once

#include <cstdint>
#include <vector>

#include "train/pipeline/simulate.h"
#include "train/recipe/options.h"
#include "train/setup/stages_setup.h"
#include "train/task/replica_spec.h"

namespace ringlet::train {

struct StageRehearsal {
  Execution execution;              ///< of the run; devices, processes and `stages` do not matter
  ReplicaSpec whole;                ///< of the model in one stage
  MakeOptimizer make_optimizer{};   ///< see TrainOptions
  std::vector<std::int64_t> sizes;  ///< [m] samples of a replica's micro-batches, the largest first
  int replicas = 1;                 ///< of each stage
  int steps = 1;                    ///< that count
};

/// Whether all that a step needs can be made up: not for a loss that has centres of classes, looks
/// at samples, or has fields.
bool can_rehearse(const ReplicaSpec& whole);

struct RehearsedStages {
  PipelineTimes times;                ///< [p], [p - 1] and [p][m]
  std::vector<std::int64_t> scratch;  ///< [p] bytes that kernels work in, in an evaluation as well
};

/// On processors of this machine, a thread for each rank and more where the execution says so.
/// Every rank needs the memory that it needs in the run. Throws what a run throws.
RehearsedStages rehearse_stages(const StagesSetup& stages, const StageRehearsal& rehearsal);

/// How many steps, and which micro-batches of each, where a step takes about so many seconds: half
/// a second together, one step at least; of long ones not all micro-batches, but so many
/// that each stage holds what it holds in the run by 1F1B.
void choose_length(StageRehearsal& rehearsal, int stages, double step_seconds);

}  // namespace ringlet::train
