// TrainStep: one rank's optimiser step, for the library's loop (train_loop.h) and for loops of
// one's own (train/learner.h).
//
//   begin()                     rates and counts, sent to the device
//   add(), once a micro-batch   forward() and backward(); during the last one's backward, buckets
//                               of gradients are summed over the ranks
//   finish_gradients()          what is enqueued from here on reads the sums
//   send_sums(), take_sums()    loss, samples and wishes of all ranks, on their way to the host
//   update()                    the optimiser changes the parameters; what the step says of running
//                               statistics is taken into them. Under f16, a step whose gradient
//                               is broken changes nothing (kernels/loss_scale.h)
//
// update() may come before take_sums(), so that nothing waits for the host, or after it, so that a
// broken loss is found first. Every rank makes the same steps.
//
// With ReplicaSpec::passes above 1, so many forwards may come before the first one's backward. Both
// come in the order of the micro-batches, and the bits are those of add(). What a forward says of
// its shard (loss, running statistics) then waits in a room of its own for the shard's last
// backward, as the gradients' arena may still be another shard's.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "data/loader.h"
#include "kernels/host_copy.h"
#include "train/files/state.h"
#include "train/loop/loss_scale.h"
#include "train/loop/ranks.h"
#include "train/loop/replica.h"
#include "train/loop/sharded_rows.h"
#include "train/loop/step_inputs.h"
#include "train/optimizers/optimizer.h"
#include "train/reports/reports.h"
#include "train/sync/data_axis.h"
#include "train/sync/gradient_squares.h"
#include "train/sync/gradient_sync.h"
#include "train/sync/stage_sums.h"
#include "train/sync/world_statistics.h"

namespace ringlet::train {

struct TrainStepOptions {
  SyncOptions sync{};
  MakeOptimizer make_optimizer{};  ///< see TrainOptions
  int shards = 1;                  ///< logical shards that this rank owns; 1 outside exact mode
  int in_flight = 0;               ///< send_sums() may be called so often more than take_sums()
  bool grad_norm = false;          ///< StepSums::grad_norm is wanted
  /// Batch norm sees the world's batch: every add() of a rank meets one of each other.
  bool world_statistics = false;
};

/// The work that a run will do.
struct Rehearsal {
  std::vector<std::int64_t> training{};    ///< samples of forward and backward passes, above 0
  std::vector<std::int64_t> evaluation{};  ///< samples of passes in evaluation mode, above 0
  std::vector<std::int64_t> answers{};     ///< of passes up to the model's answer
  bool accumulates = false;                ///< the gradients of several passes are added
  ConstView position{};                    ///< as add() will get it
};

/// Where a micro-batch stands in its step.
struct MicroBatch {
  int shard = 0;  ///< of this rank's, from 0
  bool first_of_shard = true;
  bool last_of_shard = true;
  bool last = true;  ///< of this rank's step
  /// Of all ranks' passes beside this one; asked for where batch norm sees the world's batch.
  std::int64_t world_samples = 0;
  int pass = 0;  ///< of this rank's step, from 0
  /// Those of each rank in each pass, pass by pass; asked for where rows are cut over ranks
  /// (TrainStep::is_sharded).
  std::span<const std::int64_t> samples_by_rank{};
};

/// Of a step, equal on all ranks.
struct StepSums {
  double loss = 0;  ///< sum over the world's samples
  std::int64_t samples = 0;
  int stop_wishes = 0;  ///< ranks that wish to stop
  /// L2 norm of the summed gradient, where it is wanted, clips or was narrow.
  double grad_norm = 0;
  std::int64_t skips_in_row = 0;     ///< under f16, this step's included; above 0: it was skipped
  double loss_scale = 1;             ///< with which backward began
  bool awaited = true;               ///< see StepReport
  std::array<double, kTold> told{};  ///< TaskPass::told
  bool skipped() const { return skips_in_row > 0; }
};

class TrainStep {
 public:
  /// Device and communicator outlive the step. The parameters are not initialised.
  TrainStep(Device& device, comm::Communicator& communicator, const ReplicaSpec& spec,
            const TrainStepOptions& options)
      : TrainStep(device, ranks_of(communicator), spec, options) {}
  /// One stage of a model, where ReplicaSpec::stage says so.
  TrainStep(Device& device, const Ranks& ranks, const ReplicaSpec& spec,
            const TrainStepOptions& options);
  /// Waits for what is under way: it uses this memory.
  ~TrainStep();
  TrainStep(const TrainStep&) = delete;
  TrainStep& operator=(const TrainStep&) = delete;

  /// Runs all kinds of work once, on zeros and without a collective: afterwards no launch loads a
  /// kernel, chooses one, or allocates. To be called first, before the parameters are initialised.
  /// It leaves the parameters, the gradients, the optimiser's state and what is counted and traced
  /// as they were; whoever initialises the parameters fills the buffers.
  void rehearse(const Rehearsal& work);
  /// The same where several ranks have GPUs; returns when all of them have done it. Collective.
  /// While a collective waits on a GPU for the other replicas, the driver may hold back what a
  /// first launch does: load a kernel, allocate, reach another GPU. Where the replica that it waits
  /// for is a thread of the same process and does just that, both wait for ever.
  void rehearse_together(const Rehearsal& work);

  /// `world_samples`: of the whole step on all ranks; gradients are divided by it, or by
  /// `world_weight`, what all of them weigh (Task::weights), where that is not 0. `own_samples`: of
  /// this rank. Of several calls before a step's last micro-batch, the last one counts.
  void begin(const Rates& rates, std::int64_t world_samples, std::int64_t own_samples,
             bool stop_wished, double world_weight = 0) {
    begin_with_one_of(std::span(&rates, 1), world_samples, own_samples, stop_wished, world_weight);
  }
  /// Under f16, where the sums of n steps are not taken yet: the rates where none of these was
  /// made, where one was, up to all n.
  void begin_with_one_of(std::span<const Rates> rates, std::int64_t world_samples,
                         std::int64_t own_samples, bool stop_wished, double world_weight = 0);
  /// Where a step has some rows of a parameter alone (Parameter::sampling).
  bool samples_rows() const { return sampler_ != nullptr; }
  /// The rows of the step that begins, number `step` of the run, by the labels of all its samples
  /// in the world. To be called before its first add(), where samples_rows().
  void list_rows(std::int64_t step, std::span<const std::int32_t> labels);
  /// The batch's memory, on the device, must stay until the stream has come through. It may be
  /// empty. `position`: see Replica::forward().
  void add(const data::Batch& batch, const MicroBatch& micro, ConstView position = {});
  /// The two halves of add(). `pass`: of Replica::passes(), one that is not between both; where
  /// there are several, ContractError is thrown for one that is, and for a backward of another. The
  /// batch's memory, and micro.samples_by_rank, stay until its backward has run.
  void forward(const data::Batch& batch, const MicroBatch& micro, ConstView position = {},
               int pass = 0);
  void backward(int pass = 0);
  /// What messages call the passes from now on: a literal, or comm::lasting().
  void name_passes(const char* activity) { activity_ = activity; }
  void finish_gradients();
  void update();

  // Of --ema (weight_average.h); without it they do nothing.

  /// The average becomes the weights as they are: where a run begins.
  void begin_average();
  /// The average goes where the weights are, and back the next time. With no step in flight.
  void swap_average();

  /// add() to update() were captured, and their graph was launched. `is_new`: captured for this
  /// launch.
  void graph_launched(bool is_new) { sync_.graph_launched(is_new); }

  void send_sums();
  /// Waits for the oldest sums that were sent and not taken. Throws if a rank has failed, as the
  /// sums may then be none.
  StepSums take_sums();

  /// Copies parameters, buffers and the optimiser's state from rank 0 to all, of a stage each. Rows
  /// that are cut over ranks go to those that have them, from `read`: what rank 0 has read, if
  /// anything. Collective.
  void broadcast_state(const HostState* read = nullptr);
  /// Where rows are cut over ranks: collective, and whole on rank 0 alone. Without `rows_of_loss`,
  /// nothing of the loss's own parameters.
  HostState download_state(bool rows_of_loss = true);
  void upload_state(const HostState& state);

  /// Whether parameters' rows are cut over the ranks (nn/placement.h), so that in each pass of a
  /// rank all others take part.
  bool is_sharded() const { return axis_ != nullptr; }
  /// What reads and writes them; null: nothing is cut.
  ShardedRows* rows() { return rows_.get(); }
  /// Null: nothing is cut.
  DataAxis* axis() { return axis_.get(); }
  /// Null: batch norm sees its own batch.
  WorldStatistics* world_statistics() { return world_.get(); }

  /// To be called where an exception leaves a step: tells the other ranks, and returns when no
  /// collective reads this rank's memory any more.
  void abandon() noexcept;

  Replica& replica() { return replica_; }
  const Optimizer& optimizer() const { return *optimizer_; }
  const GradientSync& sync() const { return sync_; }
  bool clips() const { return clip_norm_ > 0; }
  /// Whether steps may be skipped: under f16.
  bool scales_loss() const { return loss_scale_ != nullptr; }
  /// Under f16: begins with another scale, on this rank.
  void set_loss_scale(const LossScaleState& state);
  const LossScale* loss_scale() const { return loss_scale_.get(); }  ///< null: not under f16
  /// Steps of the run that were skipped, as far as their sums were taken.
  std::int64_t skips() const { return skips_; }
  PhaseSeconds& phases() { return phases_; }

 private:
  void rehearse_update();
  void apply(const ConstView& rates, const ConstView& scale);
  void begin_loss_scale();
  void begin_pass(const MicroBatch& micro, std::int64_t samples);
  View sums_of(int shard);
  void count_share(std::int64_t samples);
  NormLimit norm_limit() const;
  void measure_gradient(bool rehearses = false);

  Device& device_;
  comm::Communicator& communicator_;
  const char* activity_ = "forward and backward";
  Replica replica_;
  std::unique_ptr<Optimizer> optimizer_;
  ShardTree tree_;
  GradientSync sync_;
  std::unique_ptr<StageSums> stages_;                   // null: one stage
  std::unique_ptr<WorldStatistics> world_;              // null: batch norm sees its own batch
  std::unique_ptr<DataAxis> axis_;                      // null: no rows are cut
  std::unique_ptr<ShardedRows> rows_;                   // the same
  std::int64_t most_samples_ = 0, most_evaluated_ = 0;  // in any rank's pass of the kind
  std::unique_ptr<LossScale> loss_scale_;               // null: not under f16
  StepInputs inputs_;
  std::unique_ptr<nn::RowSampler> sampler_;  // null: a step has all rows
  std::unique_ptr<Uploader> listed_;
  GradientSquares squares_;
  Readback sums_;
  double clip_norm_;
  double lr_;  // of the recipe; 0: whoever makes the steps has rates of its own
  double head_lr_;
  bool grad_norm_;
  std::int64_t skips_ = 0;
  std::vector<StepRates> rates_;    // of begin()
  std::int64_t world_samples_ = 1;  // of the step
  nn::BatchShare share_;            // of the micro-batch whose forward ran last
  struct Open {
    MicroBatch micro;
    std::int64_t samples = 0;
    bool is_open = false;  // between both, where there are several
  };
  std::vector<Open> open_;  // by pass: of its last forward
  Tensor rooms_;  // [passes x nn::Parameters::sums()]: of shards by turns; empty for one pass
  PhaseSeconds phases_;
};

}  // namespace ringlet::train
