// What each part of a model costs: what balance() cuts by, and what a forecast is made of.
//
// A part is what no cut may split: a unit, or those that run as one (nn/stages/units.h). A cost is
// one pass of the first micro-batch, forward and backward, and one update.
//
//   measured   seconds on a device. The parts run one behind the other, each as a stage of its own
//              with the whole model's layouts and fusions, forward to the end and then back. So
//              caches are as warm as they are in a step. The median of several rounds. Where the
//              device cannot hold all parts at once, as many as it can are measured together.
//   planned    the dry run's flops, and kFlopsPerByte for each byte that has to be moved. These are
//              no seconds: only their ratios say something. Winograd, caches and launches are not
//              in them.
//
// Bytes are the dry run's in both. Those of parts are for balance(), which adds them up: without
// evaluations and what goes back over a cut. plan_stage() has both. Who measures on one rank sends
// numbers_of() to the others.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "nn/placement.h"
#include "nn/stages/stages.h"
#include "train/pipeline/balance.h"
#include "train/task/replica_spec.h"

namespace ringlet::train {

/// A model whose stages are asked for, without the loss's parameters, which the last stage gets.
/// Not registered: its parameters belong to whoever makes stages of it (nn::stage_of).
struct CutModel {
  ReplicaSpec spec;     ///< max_train_batch: samples of the first, largest micro-batch
  nn::InputSpec input;  ///< of such a micro-batch
  std::unique_ptr<nn::Layer> model;
  nn::Units units;
  MakeOptimizer make_optimizer{};  ///< see TrainOptions
  int numbers_kept = 0;            ///< by the optimiser, for each parameter
  nn::AxisPosition along{};        ///< the replica that is looked at, where rows are cut
};
/// `along`: where the replica with most of the rows that are cut stands. Throws ContractError where
/// the images do not fit the model.
CutModel make_cut_model(const ReplicaSpec& spec, const MakeOptimizer& make_optimizer = {},
                        const nn::AxisPosition& along = {});

struct UnitCosts {
  bool measured = false;
  std::vector<UnitCost> parts{};           ///< in the model's order, of one pass and one update
  std::vector<int> begins{};               ///< [parts] the first unit of each
  std::vector<std::int64_t> activation{};  ///< [parts - 1] bytes that a cut behind a part sends on
  std::vector<std::int64_t> gradient{};  ///< [parts - 1] and back; 0 where nothing is learnt there
  double per_byte = 0;                   ///< what it costs to move a byte to another device
};

/// Bytes that stages need, found by a dry run.
struct StageBytes {
  std::int64_t parameters = 0;  ///< numbers that are learnt
  std::int64_t standing = 0;    ///< values, gradients, the optimiser's state, statistics
  std::int64_t pass = 0;        ///< what a pass holds: activations, and what comes over the cuts
  std::int64_t kept = 0;        ///< of these what comes: the input, and the output's gradient
  std::int64_t evaluation = 0;  ///< what a pass of an evaluation needs beyond that
  double forward = 0;           ///< planned costs of a pass, and of an update
  double backward = 0;
  double update = 0;
};
/// Of units [begin, end).
StageBytes plan_stage(CutModel& model, int begin, int end);

UnitCosts plan_costs(CutModel& model);

struct MeasureOptions {
  double seconds = .2;  ///< for each part, about
  int least = 3;        ///< rounds, whatever they take; one more before them is not counted
  int most = 25;
  std::int64_t memory = 0;  ///< bytes that parts may have together; 0: what the device has free
};
/// On `device`, whose streams do nothing else. Throws OutOfMemoryError naming a part that does not
/// fit by itself.
UnitCosts measure_costs(CutModel& model, Device& device, const MeasureOptions& options = {});

/// All that is measured, and back: [3 * parts + 1]. Throws ContractError for another size.
std::vector<double> numbers_of(const UnitCosts& costs);
void take_numbers(UnitCosts& costs, std::span<const double> numbers);

/// What balance() needs for a step of `micro_batches` passes, all of the first one's size.
BalanceInput balance_input(const UnitCosts& costs, int stages, int micro_batches);

/// Cuts behind parts as the first units of all stages but the first.
std::vector<int> begins_of(const UnitCosts& costs, const std::vector<int>& cuts);

}  // namespace ringlet::train
