#include "data/loader.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "base/data_error.h"
#include "data/batch_memory.h"
#include "data/batch_writer.h"
#include "data/loader_workers.h"

namespace ringlet::data {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void check_options(const LoaderOptions& options, const Dataset& set) {
  const auto fail = [](const std::string& what) { throw DataError("loader: " + what); };
  if (options.max_batch <= 0) fail("max_batch must be positive");
  constexpr std::int64_t kMostPixels = std::int64_t{1} << 56;
  if (options.max_batch > kMostPixels / std::max<std::int64_t>(1, set.pixels())) {
    fail("no memory holds a batch of " + std::to_string(options.max_batch) + " samples");
  }
  if (options.depth != 0 && options.depth < 2) fail("depth must be 0, or at least 2");
  if (options.held < 1) fail("held must be at least 1");
  if (options.workers < 0 || options.workers > LoaderOptions::kMostWorkers) {
    fail("LoaderOptions::workers is " + std::to_string(options.workers) + "; give 0 to " +
         std::to_string(LoaderOptions::kMostWorkers));
  }
  for (const PerChannel* numbers : {&options.mean, &options.deviation}) {
    const std::int64_t count = std::ssize(numbers->values());
    if (count == 1 || count == set.channels()) continue;
    fail("there are " + std::to_string(count) + " means or deviations for images of " +
         std::to_string(set.channels()) + " channels");
  }
  for (const float deviation : options.deviation.values()) {
    if (!(deviation > 0) || !std::isfinite(deviation)) fail("the deviation must be positive");
  }
  for (const float mean : options.mean.values()) {
    if (!std::isfinite(mean)) fail("the mean must be finite");
  }
}

/// Batches of memory.
std::size_t batches_of(const LoaderOptions& options, bool reads) {
  if (options.depth == 0 || options.workers == 0) return static_cast<std::size_t>(options.held);
  const auto depth = static_cast<std::size_t>(options.depth) + options.held - 1;
  if (!reads || options.workers == 1) return depth;
  const std::int64_t ahead = 2 * std::int64_t{options.workers};  // samples, so that none idles
  return std::max(depth, static_cast<std::size_t>(1 + options.held + ahead / options.max_batch));
}

}  // namespace

/// A ring of batches between one producer, the loader's thread, and one consumer, the caller of
/// next(). The consumer holds the latest LoaderOptions::held of those before `taken_`.
class Loader::Impl {
 public:
  Impl(std::shared_ptr<const Dataset> dataset, const Sampler& sampler, BatchSchedule schedule,
       const LoaderOptions& options, Allocator& allocator)
      : dataset_(std::move(dataset)),
        schedule_(std::move(schedule)),
        writer_(*dataset_, sampler, options),
        memory_(allocator, writer_, options.max_batch, batches_of(options, writer_.reads())),
        threaded_(options.depth != 0 && options.workers != 0),
        most_held_(options.held) {
    if (threaded_ && options.workers > 1 && writer_.reads()) {
      workers_.emplace(schedule_, writer_, memory_, options);
    } else if (threaded_) {
      thread_ = std::thread([this] { produce(); });
    }
  }

  ~Impl() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  const Batch* next() {
    const Clock::time_point start = Clock::now();
    const Batch* batch = workers_ ? workers_->next() : threaded_ ? take() : prepare_here();
    waited_ += seconds_since(start);
    return batch;
  }

  std::exception_ptr failure_within(std::int64_t batches) {
    const Clock::time_point start = Clock::now();
    std::exception_ptr failure = workers_    ? workers_->failure_within(batches)
                                 : threaded_ ? look_ahead(batches)
                                             : nullptr;
    waited_ += seconds_since(start);
    return failure;
  }

  double waited_seconds() const { return waited_; }

 private:
  /// Fills the batch of request `k`; false at the end of the schedule.
  bool prepare(std::int64_t k) {
    const std::optional<BatchRequest> request = schedule_(k);
    if (!request) return false;
    writer_.write(*request, slot(k));
    return true;
  }

  Batch& slot(std::int64_t k) { return memory_[k]; }

  const Batch* prepare_here() {
    if (ended_ || !prepare(taken_)) {
      ended_ = true;
      return nullptr;
    }
    return &slot(taken_++);
  }

  const Batch* take() {
    std::unique_lock lock(mutex_);
    held_ = std::min(held_, most_held_ - 1);  // the oldest one may be overwritten now
    changed_.notify_all();
    changed_.wait(lock, [this] { return taken_ < prepared_ || ended_; });
    if (taken_ == prepared_) {
      if (error_) std::rethrow_exception(error_);
      return nullptr;
    }
    ++held_;
    return &slot(taken_++);
  }

  std::exception_ptr look_ahead(std::int64_t batches) {
    std::unique_lock lock(mutex_);
    const std::int64_t room = static_cast<std::int64_t>(memory_.count()) - held_;
    const std::int64_t reach = taken_ + std::min(batches, room);
    changed_.wait(lock, [this, reach] { return prepared_ >= reach || ended_; });
    return prepared_ < reach ? error_ : nullptr;
  }

  /// The thread.
  void produce() {
    try {
      while (wait_for_room() && prepare(prepared_)) publish();
    } catch (...) {
      error_ = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  /// False when the loader is being destroyed.
  bool wait_for_room() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] {
      const std::int64_t in_use = prepared_ - taken_ + held_;
      return stopping_ || in_use < static_cast<std::int64_t>(memory_.count());
    });
    return !stopping_;
  }

  void publish() {
    const std::lock_guard lock(mutex_);
    ++prepared_;
    changed_.notify_all();
  }

  std::shared_ptr<const Dataset> dataset_;
  BatchSchedule schedule_;
  BatchWriter writer_;
  BatchMemory memory_;
  const bool threaded_;
  const std::int64_t most_held_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t prepared_ = 0;  // batches that the producer has finished
  std::int64_t taken_ = 0;     // batches that the consumer has been given
  std::int64_t held_ = 0;      // those before taken_ that the consumer still uses
  bool stopping_ = false;
  bool ended_ = false;
  std::exception_ptr error_;  // written before ended_, read after it

  double waited_ = 0;  // seconds; the consumer's own
  // Last: they use everything above. At most one of them is there.
  std::optional<LoaderWorkers> workers_;
  std::thread thread_;
};

Loader::Loader(std::shared_ptr<const Dataset> dataset, const Sampler& sampler,
               BatchSchedule schedule, const LoaderOptions& options, Allocator& allocator) {
  if (!dataset) throw DataError("loader: there is no data set");
  if (!schedule) throw DataError("loader: the schedule is empty; give a function of requests");
  check_options(options, *dataset);
  if (sampler.size() != dataset->size()) {
    throw DataError("loader: the sampler is for " + std::to_string(sampler.size()) +
                    " samples, but " + dataset->description());
  }
  try {
    impl_ = std::make_unique<Impl>(std::move(dataset), sampler, std::move(schedule), options,
                                   allocator);
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) throw;
    throw DataError("no further thread can be started for the " + std::to_string(options.workers) +
                    " of --workers (" + error.code().message() +
                    "); use fewer, or raise the limits on memory and threads (ulimit -v, ulimit "
                    "-u)");
  }
}

Loader::~Loader() = default;

const Batch* Loader::next() { return impl_->next(); }

std::exception_ptr Loader::failure_within(std::int64_t batches) {
  return impl_->failure_within(batches);
}

double Loader::waited_seconds() const { return impl_->waited_seconds(); }

}  // namespace ringlet::data
