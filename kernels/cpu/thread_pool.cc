#include "kernels/cpu/thread_pool.h"

#include <chrono>
#include <utility>

#include "base/error.h"
#include "base/processors.h"
#include "base/spin.h"

namespace ringlet {

namespace {

// About as long as falling asleep and being woken takes.
constexpr std::chrono::microseconds kSpin(50);

/// Threads of all pools of the process, their callers among them.
std::atomic<int> threads_of_all{0};

}  // namespace

ThreadPool::ThreadPool(int threads) : processors_(usable_processors()) {
  require(threads >= 1, "ThreadPool", "the calling thread is one of its threads");
  threads_of_all += threads;
  try {
    for (int thread = 1; thread < threads; ++thread) {
      workers_.emplace_back([this, thread] { work(thread); });
    }
  } catch (...) {  // the system starts no further one
    end();
    threads_of_all -= threads;
    throw;
  }
}

ThreadPool::~ThreadPool() {
  end();
  threads_of_all -= threads();
}

void ThreadPool::end() {
  stop_ = true;
  ++round_;
  round_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::wait_for_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) const {
  if (threads_of_all <= processors_) {
    if (spin_until([&] { return value != old; }, kSpin)) return;
  }
  value.wait(old);
}

void ThreadPool::fork_join(std::int64_t n, Body body, void* context) {
  n_ = n;
  body_ = body;
  context_ = context;
  running_ = static_cast<std::uint32_t>(workers_.size());
  ++round_;  // publishes the three fields above
  round_.notify_all();
  run_part(0);
  for (std::uint32_t left = running_; left != 0; left = running_) wait_for_change(running_, left);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::run_part(int thread) {
  const std::int64_t begin = n_ * thread / threads();
  const std::int64_t end = n_ * (thread + 1) / threads();
  if (begin == end) return;
  try {
    body_(context_, begin, end, thread);
  } catch (...) {
    const std::lock_guard lock(error_mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

void ThreadPool::work(int thread) {
  std::uint32_t seen = 0;
  while (true) {
    wait_for_change(round_, seen);
    seen = round_;
    if (stop_) return;
    run_part(thread);
    if (--running_ == 0) running_.notify_one();
  }
}

}  // namespace ringlet
