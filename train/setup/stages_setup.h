// The stages of a run's model: which layers each has, and what comes of that.
//
// A number of stages is cut so that the slowest one is fastest (train/forecast), by what the
// model's parts cost: measured on the run's first device, or planned. Stages that are written by
// hand are only forecast. What is forecast of measured stages is what they take together, where all
// are on processors of this machine (stage_rehearsal.h). Where the world is several processes, the
// first one measures and tells the others, so that all cut alike. No number that is learnt depends
// on any of it, and no file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/core/group.h"
#include "nn/layer.h"
#include "nn/plan.h"
#include "nn/stages/stages.h"
#include "train/forecast/forecast.h"
#include "train/recipe/options.h"
#include "train/recipe/stage_count.h"
#include "train/task/replica_spec.h"

namespace ringlet::train {

/// Of a model that is cut into two stages or more.
struct StagesSetup {
  nn::Stages cuts;
  std::vector<std::shared_ptr<const StageSpec>> specs;  ///< of each stage
  /// The whole model, which has no memory: for files, and for what is told of it.
  std::unique_ptr<nn::Layer> model;
  nn::Registry registry;
  nn::Plan plan;
  Forecast forecast{};          ///< of a step of the first replica
  double measured_seconds = 0;  ///< that it took this process to measure the costs

  int count() const { return static_cast<int>(cuts.size()); }
};

/// Null: the model is not cut. `spec`: of the whole model. `sizes`: samples of the first replica's
/// passes in a step, the largest first. `replicas`: of each stage. `group`: the processes of the
/// run; without one, a world of several processes goes by planned costs, as nobody could tell them
/// what was measured. Measuring takes about a second; or four passes over the largest micro-batch
/// and two steps, where these take longer. Throws ContractError where the model cannot be cut so,
/// where a stage does not fit its device, and for what stages are not for; OutOfMemoryError where a
/// part alone does not fit.
std::shared_ptr<const StagesSetup> stages_of(const TrainOptions& options, const ReplicaSpec& spec,
                                             const std::vector<std::int64_t>& sizes, int replicas,
                                             comm::Group* group);

/// What the ranks of each stage are built of.
std::vector<std::shared_ptr<const StageSpec>> specs_of(const nn::Units& units,
                                                       const nn::Stages& cuts);

/// What a device of this process has, and the stages that are to run on it.
struct StageRoom {
  std::string device;
  std::int64_t bytes = 0;
  std::vector<int> stages{};  ///< of each rank that is on it
};
/// Throws ContractError naming the stage that needs most of the first device that has too little.
void require_fit(const Forecast& forecast, const std::vector<StageRoom>& rooms);

/// What a rank of `stage` is built of, with as many passes as the pipeline has it hold.
ReplicaSpec spec_of_stage(ReplicaSpec whole, const StagesSetup& stages, const Pipeline& pipeline,
                          int stage, bool recompute);

/// "stage 1 (layer3 .. fc), replicas 0 and 1, ranks 2 and 3", of ranks of the world; behind " and "
/// those of another stage.
std::string name_of_ranks(const StagesSetup& stages, const std::vector<int>& ranks, int replicas);
/// "stage 1 (layer3 .. fc), replica 0, rank 2"
std::string name_of_rank(const StagesSetup& stages, int rank, int replicas);

}  // namespace ringlet::train
