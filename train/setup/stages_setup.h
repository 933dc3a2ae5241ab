// The stages of a run's model: which layers each has, by hand or by the model's planned costs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nn/layer.h"
#include "nn/plan.h"
#include "nn/stages/stages.h"
#include "train/recipe/options.h"
#include "train/setup/replica_spec.h"

namespace ringlet::train {

/// Of a model that is cut into two stages or more.
struct StagesSetup {
  nn::Stages cuts;
  std::vector<std::shared_ptr<const StageSpec>> specs;  ///< of each stage
  /// The whole model, which has no memory: for files, and for what is told of it.
  std::unique_ptr<nn::Layer> model;
  nn::Registry registry;
  nn::Plan plan;
  std::vector<std::int64_t> parameters;  ///< numbers that each stage learns

  int count() const { return static_cast<int>(cuts.size()); }
};

/// How many stages Execution::stages says. Throws ContractError for a number below 1.
int stages_in(const std::string& stages);
/// The replicas of a world of so many ranks. Throws ContractError where these are no multiple of
/// the stages.
int replicas_in(int world, const Execution& execution);

/// Null: the model is not cut. `spec`: of the whole model. A number of stages is cut so that the
/// slowest one is fastest, as the model's floating-point operations and bytes say. Throws
/// ContractError where the model cannot be cut so, and for what stages are not for.
std::shared_ptr<const StagesSetup> stages_of(const TrainOptions& options, const ReplicaSpec& spec);

/// "stage 1 (layer3 .. fc), replicas 0 and 1, ranks 2 and 3", of ranks of the world; behind " and "
/// those of another stage.
std::string name_of_ranks(const StagesSetup& stages, const std::vector<int>& ranks, int replicas);
/// "stage 1 (layer3 .. fc), replica 0, rank 2"
std::string name_of_rank(const StagesSetup& stages, int rank, int replicas);

}  // namespace ringlet::train
