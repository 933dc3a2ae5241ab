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
// step instead gets an error that names who made how many.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "data/loader.h"
#include "kernels/memory.h"
#include "train/loop/train_step.h"
#include "train/recipe/schedule.h"

namespace ringlet::train {

/// What of a Recipe a learner has.
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
};

class Learner {
 public:
  /// The weights start as the model's initialisers say, alike on every rank; there is no need to
  /// send them around. Device and communicator must outlive the learner. Collective: where several
  /// ranks have GPUs, they rehearse, and all of them meet here. Throws ContractError for a size in
  /// `other_batches` that is not from 1 to max_batch, for sizes that no batch has, for no model,
  /// for options beyond their ranges, and for what nn::plan_training() finds in the model;
  /// OutOfMemoryError for a batch that no memory holds.
  Learner(Device& device, comm::Communicator& communicator, const MakeModel& make_model,
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
  /// to be clipped has no finite norm; the update is then not made. The learner counts steps by
  /// itself: rates.step is not read. With precision f16, a step whose gradient is broken is
  /// skipped, and is none of steps(); after LossScale::kMostSkips in a row it throws ContractError.
  /// `world_weight`: what the samples of all ranks weigh, where the task's loss multiplies by
  /// weights; the mean is over it then. 0: each counts 1.
  double step(const data::Batch& batch, std::int64_t world_samples, const Rates& rates,
              double world_weight = 0);

  /// Forward and backward only: the gradients, and the loss, are added to those of the following
  /// step(), which gets the last micro-batch. `world_samples`: of all micro-batches of that step on
  /// all ranks, as step() is told; so is `world_weight`. This rank alone; ranks may cut their
  /// samples into different numbers of micro-batches.
  void accumulate(const data::Batch& batch, std::int64_t world_samples, double world_weight = 0);

  /// The mean loss of `batch`, and what the task says of it. This rank alone. Throws ContractError
  /// for an empty one.
  Evaluation evaluate(const data::Batch& batch);
  /// How many samples of `batch` the model classifies rightly. This rank alone.
  std::int64_t count_right(const data::Batch& batch);

  /// Whether the last step() was skipped, which precision f16 may do.
  bool skipped() const { return skipped_; }

  /// Steps made, those before resume() included.
  std::int64_t steps() const { return steps_; }

  /// Writes weights, the optimiser's state and the number of steps to OUT/state, as one
  /// (train/files/state.h). Rank 0 writes, on the others nothing happens. Throws FileError, and
  /// Error where numbers are not finite; the former state then stays. Not between accumulate() and
  /// step().
  void save(const std::filesystem::path& out);
  /// Goes on from the state in OUT, of any number of ranks, as if never stopped. Rank 0 reads it.
  /// Collective. Throws FileError for one that does not fit the model or the optimiser.
  void resume(const std::filesystem::path& out);

  nn::Parameters& parameters() { return step_.replica().parameters(); }

 private:
  data::Batch to_device(const data::Batch& batch);
  void add(const data::Batch& batch, std::int64_t world_samples, double world_weight, Rates rates,
           bool last);
  void make_step(const StepSums& sums, std::int64_t world_samples);
  void require_between_steps(const char* what) const;
  [[noreturn]] void throw_unequal_steps();
  void end_with_the_others();

  Device& device_;
  comm::Communicator& communicator_;
  LearnerOptions options_;
  TrainStep step_;
  Tensor images_;               // f32 [max_batch, C, H, W]
  Tensor targets_;              // i32 [max_batch]
  std::vector<Tensor> fields_;  // f32 [max_batch, numbers]
  Tensor loss_;                 // f32 [1]
  Tensor numbers_;              // of the task's metric
  std::int64_t steps_ = 0;
  int micro_batches_ = 0;           // of the step under way, so far
  std::int64_t own_samples_ = 0;    // theirs
  std::int64_t world_samples_ = 0;  // of the step under way
  double world_weight_ = 0;         // the same
  bool skipped_ = false;
  bool failed_ = false;
  int exceptions_;  // under way when the learner was made
};

}  // namespace ringlet::train
