// Learner: a replica for training loops of one's own. It owns a model, its optimiser and the
// synchronisation of gradients, and knows nothing of data, epochs and schedules; the library's own
// loop is train/loop/train_loop.h.
//
//   run_replicas({.devices = {2, DeviceId{}}}, [&](Device& device, comm::Communicator& all) {
//     Learner learner(device, all, make_my_model, {.input = {1, 28, 28, 10}, .max_batch = 32});
//     while (const data::Batch* batch = my_batches.next()) {
//       const double loss = learner.step(*batch, 64, {.lr = 0.1, .momentum = 0.9});
//     }
//     learner.save("runs/mine");
//   });
//
// Every rank makes the same number of steps, with the same rates, on its own samples. Learners end
// together: the destructor waits until all ranks have come to it, and a rank that makes one more
// step instead gets an error that names who made how many. A rank that has left its body without
// that leaves nobody waiting: run_ranks() throws.
//
// A model in stages (nn/stages/stages.h) has a rank for each stage of each replica:
//
//   execution.devices = four; execution.stages = "encoder,decoder";
//   run_ranks(group, execution, [&](Device& device, const Ranks& ranks) {
//     Learner learner(device, ranks, make_my_model,
//                     {.input = ..., .micro_batches = 4, .stages = execution.stages});
//     ...
//
// There all stages of a replica are given the same batches. The numbers that are learnt are those
// of one stage with as many micro-batches.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "data/loader.h"
#include "kernels/memory.h"
#include "train/loop/ranks.h"
#include "train/loop/stage_link.h"
#include "train/loop/stage_state.h"
#include "train/loop/train_step.h"
#include "train/pipeline/program.h"
#include "train/pipeline/schedules.h"
#include "train/recipe/schedule.h"
#include "train/setup/stages_setup.h"

namespace ringlet::train {

/// What of a Recipe a learner has. `head_lr`, if above 0, is the last layer's rate in each step,
/// whatever Rates::lr is; it is for a model in one stage.
struct LearnerRecipe : OptimizerSpec, ClassificationSpec, GradientSpec, PrecisionSpec {};

struct LearnerOptions {
  /// What the model is made for. No channels: batches have no images; no outputs: no targets.
  nn::ModelInput input{};
  /// Float tensors of the batches (Batch::fields), in their order.
  std::vector<data::FieldSpec> fields{};
  std::shared_ptr<const Task> task{};  ///< what is trained for; null: classification
  std::int64_t max_batch = 64;         ///< samples of this rank's largest batch
  /// Samples of its other batches, as far as they are known. GPUs rehearse them before the first
  /// collective (TrainStep::rehearse_together()). With threads over NCCL, name them all.
  std::vector<std::int64_t> other_batches{};
  std::uint64_t seed = 1;          ///< of the weights and of dropout
  LearnerRecipe recipe{};          ///< .recipe.weight_decay, .recipe.precision, ...
  BucketSpec buckets{};            ///< in which gradients are summed
  bool emulate_precision = false;  ///< see Execution
  MakeOptimizer make_optimizer{};  ///< one of one's own; recipe.optimizer is then only its name
  int micro_batches = 1;           ///< that step() cuts its batch into
  /// What the ranks' world is cut into, as Execution::stages has it: by names of layers, or a
  /// number, which is cut by planned costs.
  std::string stages = "1";
  PipelineSchedule pipeline = PipelineSchedule::one_f_one_b;  ///< see Execution
  bool recompute = false;                                     ///< the same
};

class Learner {
 public:
  /// The weights start as the model's initialisers say, alike on every rank; there is no need to
  /// send them around. Device and communicator must outlive the learner. Collective: the ranks
  /// compare what they make, and those with GPUs rehearse. Throws MismatchError where their seeds,
  /// recipes, optimisers or parameters differ; ContractError for a size in `other_batches` that is
  /// not from 1 to max_batch, for sizes that no batch has, for no model, for options beyond their
  /// ranges, and for what nn::plan_training() finds in the model; OutOfMemoryError for a batch that
  /// no memory holds.
  Learner(Device& device, comm::Communicator& communicator, const MakeModel& make_model,
          const LearnerOptions& options)
      : Learner(device, ranks_of(communicator), make_model, options) {}
  /// Of a model in stages, of which this rank runs `ranks.stage()`. Throws ContractError as well
  /// where the model cannot be cut so, and where `ranks` have another number of stages.
  Learner(Device& device, const Ranks& ranks, const MakeModel& make_model,
          const LearnerOptions& options);
  /// Collective, but not where an exception ends the learner.
  ~Learner();
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  /// Forward, backward, sum over the ranks, update. `batch`: this rank's samples, images f32 [n, C,
  /// H, W] and fields in host memory; n may be 0 and may differ between ranks. `world_samples`: of
  /// all ranks together. Returns the mean loss over these, the same on every rank. Throws
  /// ContractError for null instead of images, targets or a field, and for a target that is no
  /// output, where the ranks' samples do not add up to `world_samples`, where another rank has
  /// ended its learner, where a gradient that travels as f16 or bf16 is beyond that, and where one
  /// to be clipped has no finite norm; the update is then not made. A batch that is refused leaves
  /// the learner as it was, and another may follow; after any other failure it goes on no more. The
  /// learner counts steps by itself: rates.step is not read. With precision f16, a step whose
  /// gradient is broken is skipped, and is none of steps(); after LossScale::kMostSkips in a row it
  /// throws ContractError.
  /// `batch.request` says which samples these are, and so what dropout drops of them; where it is
  /// empty, the learner numbers them by steps(), rank and place in the step.
  /// `world_weight`: what the samples of all ranks weigh, where the task's loss multiplies by
  /// weights; the mean is over it then. 0: each counts 1.
  double step(const data::Batch& batch, std::int64_t world_samples, const Rates& rates,
              double world_weight = 0);

  /// Forward and backward only: the gradients, and the loss, are added to those of the following
  /// step(), which gets the last micro-batch. `world_samples`: of all micro-batches of that step on
  /// all ranks, as step() is told; so is `world_weight`. This rank alone; ranks may cut their
  /// samples into different numbers of micro-batches. For a model in one stage: with several,
  /// LearnerOptions::micro_batches are those of a step.
  void accumulate(const data::Batch& batch, std::int64_t world_samples, double world_weight = 0);

  /// The mean loss of `batch`, and what the task says of it. This rank alone; in stages, all of a
  /// replica call it with the same batch, and are told the same. Throws ContractError for an empty
  /// one.
  Evaluation evaluate(const data::Batch& batch);
  /// How many samples of `batch` the model classifies rightly. As evaluate().
  std::int64_t count_right(const data::Batch& batch);

  /// Whether the last step() was skipped, which precision f16 may do.
  bool skipped() const { return skipped_; }

  /// Steps made, those before resume() included.
  std::int64_t steps() const { return steps_; }

  /// Writes weights, the optimiser's state and the number of steps to OUT/state, as one
  /// (train/files/state.h). Rank 0 writes, on the others nothing happens; in stages all call it,
  /// and the state is that of the whole model, for any number of stages. Throws FileError, and
  /// Error where numbers are not finite; the former state then stays. Not between accumulate() and
  /// step().
  void save(const std::filesystem::path& out);
  /// Goes on from the state in OUT, of any number of ranks, as if never stopped. Rank 0 reads it.
  /// Collective. Throws FileError for one that does not fit the model or the optimiser.
  void resume(const std::filesystem::path& out);

  nn::Parameters& parameters() { return step_.replica().parameters(); }

 private:
  void check(const data::Batch& batch) const;
  void check(const data::Batch& batch, std::int64_t world_samples, double world_weight) const;
  data::Batch numbered(data::Batch batch) const;
  data::Batch to_device(const data::Batch& batch);
  data::Batch micro_batch(const data::Batch& batch, int k) const;
  void add(const data::Batch& batch, std::int64_t world_samples, double world_weight, Rates rates,
           bool last);
  void run_program(const data::Batch& batch, bool last);
  void tell_all_stages();
  void make_step(const StepSums& sums, std::int64_t world_samples);
  void require_no_failure() const;
  void require_between_steps(const char* what) const;
  [[noreturn]] void throw_unequal_steps();
  void end_with_the_others();

  Device& device_;
  Ranks ranks_;
  LearnerOptions options_;
  ReplicaSpec whole_spec_;                     // of the whole model
  std::shared_ptr<const StagesSetup> stages_;  // null: the model is in one
  Pipeline pipeline_;
  TrainStep step_;
  std::unique_ptr<StageLink> link_;    // null as well
  std::unique_ptr<StageState> whole_;  // the same
  std::vector<std::int64_t> samples_;  // of the micro-batches of a batch
  Tensor images_;                      // f32 [max_batch, C, H, W]
  Tensor targets_;                     // i32 [max_batch]
  std::vector<Tensor> fields_;         // f32 [max_batch, numbers]
  Tensor loss_;                        // f32 [1]
  Tensor numbers_;                     // of the task's metric
  std::int64_t steps_ = 0;
  int micro_batches_ = 0;           // of the step under way, so far
  std::int64_t own_samples_ = 0;    // theirs
  std::int64_t world_samples_ = 0;  // of the step under way
  double world_weight_ = 0;         // the same
  bool skipped_ = false;
  std::string failure_;  // of a call that has ended this rank's part; empty: none has
  int exceptions_;       // under way when the learner was made
};

}  // namespace ringlet::train
