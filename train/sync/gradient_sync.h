// GradientSync: sums the replicas' gradients while backward goes on.
//
// The gradient arena is cut into buckets: ranges [begin, end) in the order in which gradients
// become final. Each gradient that becomes final counts its bucket down. A full bucket is summed
// over all ranks on the communication stream. Every rank starts its buckets in index order,
// whatever the order in which they fill. The statistics (loss, samples, wishes to stop) and the
// updates of running statistics (batch norm) travel in the last bucket.
//
//   compute        | backward fc2 | fc1 | conv2        | conv1        | wait     | update |
//   communication                       | bucket 0 |   | bucket 1 |   | bucket 2 |
//
// Narrow gradients (grad_dtype f16 or bf16) travel as sixteen bits. On the communication stream a
// bucket is cast into a wire buffer, summed there (in f32, rounded at each reduction, see
// comm/all_reduce/all_reduce.h) and cast back. Sixteen bits would ruin counts above 256 (bf16),
// losses and running statistics, so these then stay f32. They travel first, in a bucket of their
// own, which is full before the last backward pass begins.
//
// With narrow_between, gradients stay f32 but for what goes between machines: the communicator
// casts that (Communicator::all_reduce_narrow_between). The statistics have their own bucket then,
// too.
//
// f16 ends at 65504 and still needs no loss scale: gradients are means already where they are
// written (the seed of backward is 1 / samples of the world). Whoever reads the sums looks for
// infinite ones.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "kernels/memory.h"
#include "nn/parameters.h"
#include "nn/tape.h"
#include "train/recipe/sync_spec.h"
#include "train/sync/shard_tree.h"

namespace ringlet::train {

struct SyncOptions : BucketSpec, GradientSpec {
  /// The statistics go in a bucket of their own, whatever the gradients are: of a stage, which may
  /// have no parameters, and whose sums go on to other stages.
  bool statistics_apart = false;
};

/// What the sizes of buckets depend on.
struct SyncConditions {
  DeviceKind device = DeviceKind::cpu;
  bool is_between_machines = false;
  std::int64_t gradient_bytes = 0;  ///< of all parameters, as f32
};

/// Puts sizes of buckets where `options` leave them open. On processors of one
/// machine buckets are of 1 MiB. Between machines, where gradients take long, there are about
/// eight of 64 KiB to 1 MiB, so that most of them travel while backward goes on. On GPUs they are
/// of 25 MiB, the first of 1 MiB, as PyTorch's DistributedDataParallel has them: a collective costs
/// more to start there, and moves far more in that time. The first is sooner full.
SyncOptions with_bucket_sizes(SyncOptions options, const SyncConditions& conditions);

/// A range of the gradient arena that is summed by one collective.
struct Bucket {
  std::int64_t begin = 0, end = 0;  ///< elements
  int parameters = 0;               ///< that must be final before it starts
  std::string name{};               ///< "bucket 0 (fc2.weight .. fc1.bias)"
  DType dtype = DType::f32;         ///< the type in which they travel
  DType between = DType::f32;       ///< and between machines, where they are f32 inside
  std::int64_t wire_bytes() const { return (end - begin) * size_of(dtype); }
};

/// Cuts the plan into buckets of at least `bucket_kb` KiB of f32 (the last may be smaller; 0: one
/// bucket a parameter; not negative), the first of at least `first_bucket_kb`. The last bucket
/// takes in the statistics; where gradients are narrow, rows are cut over ranks, or options ask for
/// it, a bucket before all others has them. Gradients of rows are in none: each rank has its own
/// whole.
std::vector<Bucket> plan_buckets(const nn::Plan& plan, const SyncOptions& options);

/// Bytes of all buckets as they travel: the data of a step's all-reduces.
std::int64_t wire_bytes(const std::vector<Bucket>& buckets);

/// Name of the strategy that sums the bucket.
const char* strategy_of(const Bucket& bucket, const comm::Communicator& communicator);

/// Name of the strategy; of one that picks, with those that it picks for the buckets: "auto
/// (one-shot, two-shot)".
std::string strategies_in_words(const comm::Communicator& communicator,
                                const std::vector<Bucket>& buckets);

class GradientSync : public nn::ReadyListener {
 public:
  GradientSync(Device& device, comm::Communicator& communicator, const nn::Parameters& parameters,
               const ShardTree& tree, const SyncOptions& options);

  const std::vector<Bucket>& buckets() const { return buckets_; }
  /// Whether gradients travel as sixteen bits, where numbers that are too large become infinite.
  bool narrows() const { return !wire_.view().absent(); }

  /// Lets the communication stream have the workspace that the largest bucket needs, and cast once
  /// where gradients are narrow. Not between begin_step() and finish(); the gradients are zeros.
  void rehearse();

  /// To be called before the last backward pass of a step, after the statistics were written.
  void begin_step();
  void gradient_ready(const nn::Parameter& parameter) override;
  /// Makes the compute stream wait for the sums: what is enqueued there afterwards reads them.
  /// Rethrows what a collective threw. On a GPU the host waits for the launches only. A rank that
  /// fails later may leave no sum behind, so whoever reads numbers calls
  /// Communicator::require_alive() first.
  void finish();

  /// begin_step() to finish() were captured, and their graph was launched on the compute stream.
  /// `is_new`: captured for this launch. Throws if a rank has failed.
  void graph_launched(bool is_new);

  /// Seconds that the replica's thread has spent in begin_step(), in collectives that run in place,
  /// and waiting in finish(): the time that synchronisation costs the training.
  double waited_seconds() const { return waited_seconds_; }

  /// Steps that were synchronised.
  std::int64_t steps() const { return steps_; }
  /// Seconds of each bucket's collective on the communication stream, the wait for the last rank
  /// included: medians of the latest kTimedSteps steps. Empty with one rank, before the first step,
  /// and on a GPU, whose streams run behind the host. Not to be called between begin_step() and
  /// finish().
  std::vector<double> median_seconds() const;
  static constexpr std::int64_t kTimedSteps = 512;

 private:
  void start_full_buckets();
  void start(std::size_t bucket);
  void sum(std::size_t bucket);
  void sum_timed(std::size_t bucket, const View& data);

  Device& device_;
  comm::Communicator& communicator_;
  const nn::Parameters& parameters_;
  ShardTree tree_;
  SyncOptions options_;
  std::vector<Bucket> buckets_;
  Tensor wire_;                                // [the largest bucket] where gradients are narrow
  std::vector<int> bucket_of_parameter_;       // by Parameter::id; -1: in none
  std::vector<int> pending_;                   // parameters not yet final, by bucket
  std::vector<std::unique_ptr<Event>> ready_;  // by bucket
  std::unique_ptr<Event> done_, launched_;
  std::size_t next_ = 0;  // the first bucket that has not started
  double waited_seconds_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t sum_begin_ns_ = 0;                  // of the communication stream's thread
  std::vector<std::vector<std::int64_t>> sum_ns_;  // by bucket, a ring of kTimedSteps
};

}  // namespace ringlet::train
