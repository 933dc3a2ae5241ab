// GradientSync: makes the replicas' gradients one, while backward goes on.
//
// The gradient arena is cut into buckets: ranges [begin, end) in the order in which gradients
// become final. Each gradient that becomes final counts its bucket down; a full bucket is summed
// over all ranks on the communication stream. Buckets start in index order on every rank, always,
// whatever the order of readiness. The statistics (loss, samples, wishes to stop) ride in the last
// bucket.
//
//   compute        | backward fc2 | backward fc1 | backward conv2   | backward conv1 | wait |
//   update communication                 | bucket 0     |   | bucket 1 |                    | 2 |
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "nn/parameters.h"
#include "nn/tape.h"
#include "train/shard_tree.h"

namespace ringlet::train {

/// A range of the gradient arena that is summed by one collective.
struct Bucket {
  std::int64_t begin = 0, end = 0;  ///< elements
  int parameters = 0;               ///< that must be final before it starts
  std::string name{};               ///< "bucket 0 (fc2.weight .. fc1.bias)"
};

/// Cuts the plan into buckets of at least `bucket_kb` KiB (the last may be smaller; 0: one bucket a
/// parameter). The last bucket takes in the statistics.
std::vector<Bucket> plan_buckets(const nn::Plan& plan, std::int64_t bucket_kb);

/// "ring", or what a strategy that picks takes for the buckets: "auto (one-shot, two-shot)".
std::string strategies_in_words(const comm::Communicator& communicator,
                                const std::vector<Bucket>& buckets);

class GradientSync : public nn::ReadyListener {
 public:
  struct Options {
    std::int64_t bucket_kb = 1024;
    bool overlap = true;  ///< start buckets during backward; else all at its end
  };

  GradientSync(Device& device, comm::Communicator& communicator, const nn::Parameters& parameters,
               const ShardTree& tree, const Options& options);

  const std::vector<Bucket>& buckets() const { return buckets_; }

  /// Before the last backward pass of a step; the statistics must have been written.
  void begin_step();
  void gradient_ready(const nn::Parameter& parameter) override;
  /// What is enqueued on the compute stream after it reads the sums; rethrows what a collective
  /// threw. On a GPU the host waits for the launches alone: a rank that fails later may leave no
  /// sum behind, so whoever reads numbers asks Communicator::require_alive() first.
  void finish();

  /// Seconds that the replica's thread has spent in begin_step(), in collectives that run in place,
  /// and waiting in finish(): what synchronisation costs the training.
  double waited_seconds() const { return waited_seconds_; }

 private:
  void start_full_buckets();
  void start(std::size_t bucket);

  Device& device_;
  comm::Communicator& communicator_;
  const nn::Parameters& parameters_;
  ShardTree tree_;
  Options options_;
  std::vector<Bucket> buckets_;
  std::vector<int> bucket_of_parameter_;       // by Parameter::id
  std::vector<int> pending_;                   // parameters not yet final, by bucket
  std::vector<std::unique_ptr<Event>> ready_;  // by bucket
  std::unique_ptr<Event> done_;
  std::size_t next_ = 0;  // the first bucket that has not started
  double waited_seconds_ = 0;
};

}  // namespace ringlet::train
