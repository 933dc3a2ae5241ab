// LoaderWorkers: several threads that read the samples of a loader's batches.
//
//   batch k      [s s s s | s s s s]     a worker claims the next sample of the oldest batch that
//   batch k + 1  [s s . . | . . . .]     has one left, and begins another batch where there is room
//
// Batches come out in the schedule's order, whatever the order in which samples are done. As many
// are under way as there is memory for; then the workers wait. Samples are staged as bytes. Whoever
// finishes the last one of a block of sixteen normalises and lays out the block.
//
// An error comes out in the slot of its batch. Batches before it are still handed out, so where a
// run fails does not depend on the number of workers.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "data/batch_memory.h"
#include "data/batch_writer.h"
#include "data/loader.h"

namespace ringlet::data {

class LoaderWorkers {
 public:
  /// `options.workers` threads. All arguments outlive this.
  LoaderWorkers(const BatchSchedule& schedule, const BatchWriter& writer, BatchMemory& memory,
                const LoaderOptions& options);
  /// Waits for the samples that are being read, and for no other.
  ~LoaderWorkers();
  LoaderWorkers(const LoaderWorkers&) = delete;
  LoaderWorkers& operator=(const LoaderWorkers&) = delete;

  /// As Loader's.
  const Batch* next();
  std::exception_ptr failure_within(std::int64_t batches);

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  /// A batch under way.
  struct Slot {
    std::int64_t claimed = 0;  // samples that a worker has taken on
    std::int64_t done = 0;     // samples whose block is laid out
    std::vector<std::int64_t> read_in_block;
    std::vector<std::uint8_t> staged;  // [max_batch, pixels]
  };
  struct Claim {
    std::int64_t k = -1;  // none: the loader ends
    std::int64_t row = 0;
  };

  Slot& slot(std::int64_t k) { return slots_[static_cast<std::size_t>(k) % slots_.size()]; }
  void work();
  void stop();  ///< of the threads
  Claim claim();
  bool begin_batch();
  void read(const Claim& claim);
  /// The samples that the claim completed: those of its block, or none.
  std::int64_t note_read(const Claim& claim);
  void note_done(const Claim& claim, std::int64_t samples);
  void note_error(std::int64_t k);
  std::int64_t samples_of_block(std::int64_t k, std::int64_t block);
  bool has_room() const;

  const BatchSchedule& schedule_;
  const BatchWriter& writer_;
  BatchMemory& memory_;
  std::vector<Slot> slots_;
  const std::int64_t most_held_;

  std::mutex mutex_;
  std::condition_variable room_, ready_;
  std::int64_t begun_ = 0;     // batches that the schedule was asked for
  std::int64_t prepared_ = 0;  // whole ones, from the first on
  std::int64_t taken_ = 0;     // batches that the consumer has been given
  std::int64_t held_ = 0;      // those before taken_ that the consumer still uses
  bool stopping_ = false;
  std::int64_t end_ = kNever;  // the first request that is none, or failed
  std::exception_ptr error_;   // of that request

  std::vector<std::jthread> threads_;  // last: they use everything above
};

}  // namespace ringlet::data
