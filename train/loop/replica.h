// Replica: one copy of the model on one device, and its passes forward and backward.
//
// It knows nothing of the other replicas. Whoever drives it (train_loop.h) cuts the data, lets
// GradientSync sum the gradients after backward(), updates, and decides when to stop.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/loader.h"
#include "kernels/memory.h"
#include "nn/axis.h"
#include "nn/cross_replica.h"
#include "nn/parameters.h"
#include "nn/plan.h"
#include "nn/tape.h"
#include "train/task/replica_spec.h"

namespace ringlet::train {

class Replica {
 public:
  /// `gradients_from`: see nn::Parameters. `position`: among the ranks over which rows are cut,
  /// where the model has such (nn/placement.h); without one this replica has all.
  Replica(Device& device, const ReplicaSpec& spec, Allocator* gradients_from = nullptr,
          const nn::AxisPosition& position = {});
  ~Replica();

  Device& device() { return device_; }
  nn::Parameters& parameters() { return *parameters_; }
  const nn::Plan& plan() const { return plan_; }
  /// Passes that may be between their forward and their backward: ReplicaSpec::passes. Each has a
  /// tape and activations of its own, but where ReplicaSpec::recompute says that they share one.
  int passes() const { return static_cast<int>(passes_.size()); }
  nn::Tape& tape(int pass = 0) { return *passes_.at(static_cast<std::size_t>(pass)).tape; }

  // Of a stage (ReplicaSpec::stage), what goes over its cuts for `samples` of `pass`. All are rows
  // of the activations' type and layout, as they lie in memory.

  /// Where a stage before the last one has put what forward() made: it stays until the pass's
  /// backward() is over; where passes share a tape, until any pass runs.
  ConstView handed_on(int pass) const;
  /// Where what the stage before has handed on is to lie before forward(), until backward() is
  /// over.
  View taken(std::int64_t samples, int pass) const;
  /// Where the gradient of handed_on() is to lie before backward().
  View gradient_of_handed_on(std::int64_t samples, int pass) const;
  /// The gradient of taken(), from backward() to the pass's next forward(); where passes share a
  /// tape, until any pass runs.
  ConstView gradient_of_taken(int pass) const;

  /// Lets batch norm see the world's batch from now on; null: its own again. `world` outlives the
  /// replica's passes. An empty batch then runs a stand-in of one sample, which counts for nothing.
  void share_statistics(nn::CrossReplica* world);

  /// Lets operations on rows that are cut meet the other ranks from now on, in each pass. `axis`
  /// outlives them. An empty batch then runs a stand-in, too.
  void share_rows(nn::Axis* axis);

  /// Where a loss reads how far the run has come, f32 [1] on the device (nn::StepContext::epochs).
  void read_epochs(const ConstView& epochs) { epochs_ = epochs; }

  /// Forward of one batch in training mode. The loss, summed over the batch, stays on the tape of
  /// `pass`.
  /// The batch's memory must stay until backward() has run. An empty batch is legal. `position`:
  /// where it stands, as BatchSource::position() has it. `share`: for running statistics. `losses`
  /// (f32 [1], may be absent) += the loss; `told`: TaskPass::told.
  void forward(const data::Batch& batch, ConstView position = {}, const nn::BatchShare& share = {},
               View losses = {}, View told = {}, int pass = 0);
  /// Gradient of the last forward of `pass` times `seed` (f32 [1] on the device: 1 / samples of the
  /// whole world), into the current gradient arena. A stage before the last one begins with
  /// gradient_of_handed_on() instead.
  void backward(const View& seed, const nn::BackwardOptions& options, nn::ReadyListener* listener,
                int pass = 0);

  /// Runs what forward() and backward() run for `samples`, on zeros, and in evaluation mode what
  /// evaluate() runs; forgets the results. Parameters' gradients and the buffers are changed.
  /// `accumulate`: see nn::BackwardOptions.
  void rehearse_training(std::int64_t samples, ConstView position, bool accumulate);
  void rehearse_evaluation(std::int64_t samples);

  /// Forward in evaluation mode, of a stage before the last one: handed_on(0) has what it made.
  void evaluate_and_hand_on(const data::Batch& batch);
  /// Forward in evaluation mode: loss (f32 [1]) = the sum over the batch, which is not empty; what
  /// the task measures is added to `numbers` (Task::metric()), if that is anything.
  void evaluate(const data::Batch& batch, View loss, View numbers);
  /// The same without samples, where rows are cut: for the other ranks.
  void evaluate_nothing();

  /// Forward in evaluation mode up to the model's answer: f32 [n, K], on the tape until the next
  /// pass. `batch` has images, and ReplicaSpec::max_answer_batch of them at most.
  ConstView answer(const data::Batch& batch);
  /// Runs that for `samples`, on zeros.
  void rehearse_answer(std::int64_t samples);

  const Task& task() const { return *task_; }
  /// Whether its batches have images and fields (replica_spec.h).
  bool reads_samples() const { return train::reads_samples(spec_); }

 private:
  /// A batch of zeros. With its targets, all 0, it is a legal one.
  struct BlankBatch;
  struct Pass {
    std::shared_ptr<Arena> activations;  // its own, or that of all
    std::shared_ptr<nn::Tape> tape;      // the same
    data::Batch given;                   // to its last forward
    ConstView position;                  // the same
    nn::Batch batch;
    nn::Variable loss;                    // or what is handed on
    nn::Variable input;                   // what was
    Tensor taken, gradient_of_handed_on;  // of stages alone
    std::int64_t samples = 0;
  };

  std::int64_t plan_answer();
  void make_step_memory();
  bool stands_in() const;
  void make_stand_in();
  void begin_pass(Pass& pass, const data::Batch& batch, bool training, ConstView position,
                  const nn::BatchShare& share);
  nn::Batch on_tape(Pass& pass, const data::Batch& batch);
  bool hands_on() const { return batch_spec_.hands_on; }
  void make_crossings(Pass& pass, std::int64_t samples);
  const Pass& at(int pass) const { return passes_.at(static_cast<std::size_t>(pass)); }
  void run_again(Pass& pass);
  void run_forward(Pass& pass, const data::Batch& batch, bool training, ConstView position,
                   const nn::BatchShare& share = {}, const View& losses = {},
                   const View& numbers = {}, const View& told = {});

  Device& device_;
  ReplicaSpec spec_;
  std::shared_ptr<const Task> task_;
  nn::BatchSpec batch_spec_;  // of a batch of one sample
  Tensor constants_;          // the task's, if it has any
  std::unique_ptr<nn::Layer> model_;
  nn::Registry registry_;
  nn::Plan plan_;
  std::unique_ptr<nn::Parameters> parameters_;
  std::unique_ptr<Arena> step_memory_;  // null where none is needed
  std::vector<Pass> passes_;            // the first also evaluates
  const Pass* latest_ = nullptr;        // whose forward was the last one to run
  nn::CrossReplica* world_ = nullptr;
  nn::Axis* axis_ = nullptr;
  ConstView epochs_;
  std::unique_ptr<BlankBatch> stand_in_;  // where passes meet those of other ranks
  Tensor no_seed_;                        // 0, for its backward
};

/// The batch for a dry run, which tries no more than `device` may have memory for beside scratch
/// memory: a stream's and its branch's. There are to be so many passes at once.
nn::BatchSpec dry_batch_of(const Device& device, const ReplicaSpec& spec, std::int64_t samples,
                           int passes = 1);

}  // namespace ringlet::train
