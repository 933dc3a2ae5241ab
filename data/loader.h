// The loader: prepares batches ahead of the training loop, on a thread of its own, or on several.
//
//   schedule(k) -> request -> sampler -> gather -> normalise -> lay out
//                             '------- in one pass over a batch -------'
//
// The caller says which samples are in which batch, since it knows ranks, shards and micro-batches:
// it gives a schedule, a pure function of k = 0, 1, 2, ... The loader owns `depth` batches of
// memory, and more where several are held, got from the allocator once, and fills them in turn.
// Nothing is allocated after construction. An error of the thread is rethrown by next(). The
// destructor stops the thread at once.
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/allocator.h"
#include "base/sampling.h"
#include "data/dataset.h"
#include "data/per_channel.h"

namespace ringlet::data {

/// Positions [begin, end) in the order of `epoch`. begin == end is an empty batch.
struct BatchRequest {
  std::int64_t epoch = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const BatchRequest&) const = default;
};

/// The k-th request, or nothing when there are no more. Called once per k, in order, on the
/// loader's thread. It must not allocate if the run must not.
using BatchSchedule = std::function<std::optional<BatchRequest>(std::int64_t k)>;

enum class BatchLayout : std::uint8_t {
  nchw,     ///< [n, C, H, W]
  nhwc,     ///< [n, H, W, C]
  lanes16,  ///< [ceil(n / 16)][C][H][W][16]; lanes beyond n hold 0
};

/// A prepared batch, in the loader's memory.
struct Batch {
  float* images = nullptr;          ///< (pixel / 255 - mean) / deviation, in the loader's layout
  std::int32_t* targets = nullptr;  ///< [n]
  std::int64_t n = 0;               ///< samples; 0 is legal
  BatchRequest request;             ///< which samples these are: dropout's masks hang on it
  /// Of each of the data set's fields, in their order: [n, extents...] row-major.
  std::array<float*, kMostFields> fields{};
};

struct LoaderOptions {
  static constexpr int kMostWorkers = 1024;
  BatchLayout layout = BatchLayout::nchw;
  PerChannel mean = 0;         ///< of pixels / 255
  PerChannel deviation = 1;    ///< of pixels / 255, > 0
  std::int64_t max_batch = 0;  ///< the largest request, > 0
  int depth = 3;  ///< batches of memory, >= 2: one in use, the others ahead. 0: no thread; next()
                  ///< prepares the batch itself, in memory for those that are held
  /// The latest batches that next() gave, which all stay valid; at least 1. Each beyond the first
  /// is memory for one batch more.
  int held = 1;
  /// Threads that read samples, where they have to be read (data/loader_workers.h). 0: none, as
  /// depth 0 says; at most kMostWorkers. More batches than `depth` are under way where many workers
  /// would have nothing to do.
  int workers = 1;
  Augmentation augment{};  ///< how samples are varied; for training
  /// Called around each sample that is read, on the thread that reads it.
  std::function<void()> on_read = [] {};
};

class Loader {
 public:
  /// Batches lie in memory of `allocator` (pinned memory for a GPU, for example), which outlives
  /// this. It is asked in the constructor and the destructor only. Throws DataError for options
  /// that make no sense, and what the allocator throws.
  Loader(std::shared_ptr<const Dataset> dataset, const Sampler& sampler, BatchSchedule schedule,
         const LoaderOptions& options, Allocator& allocator = host_allocator());
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch in the schedule's order, valid until the LoaderOptions::held-th call from here;
  /// null at its end. Rethrows the thread's error, and throws DataError for a request that the data
  /// set or max_batch cannot meet.
  const Batch* next();

  /// The error for which one of the next `batches` cannot be prepared; null where they all can, or
  /// the schedule ends. Waits until that is known. Looks as far ahead as there is memory, and not
  /// at all where next() prepares them itself.
  std::exception_ptr failure_within(std::int64_t batches);

  /// Seconds that both calls have spent waiting (or, with depth 0, preparing) since construction.
  double waited_seconds() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ringlet::data
