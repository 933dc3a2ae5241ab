#include "kernels/task_queue.h"

#include <atomic>
#include <utility>

namespace ringlet {

namespace {

std::atomic<int> task_threads{0};

}  // namespace

int TaskQueue::threads() { return task_threads; }

TaskQueue::TaskQueue(std::function<void()> at_start) : ring_(kCapacity) {
  worker_ = std::thread([this, at_start = std::move(at_start)] {
    if (at_start) {
      try {
        at_start();
      } catch (...) {
        const std::lock_guard lock(mutex_);
        error_ = std::current_exception();
      }
    }
    work();
  });
  ++task_threads;
}

TaskQueue::~TaskQueue() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  worker_.join();
  --task_threads;
}

void TaskQueue::push(Task task, bool always) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return count_ < kCapacity; });
    ring_[(head_ + count_) % kCapacity] = {task, always};
    ++count_;
  }
  changed_.notify_all();
}

void TaskQueue::synchronize() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return count_ == 0; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void TaskQueue::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return count_ > 0 || stop_; });
    if (count_ == 0) return;  // what was handed over before the end has run
    Entry entry = ring_[head_];
    const bool dropped = error_ && !entry.always;
    lock.unlock();
    std::exception_ptr error;
    try {
      if (!dropped) entry.task();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !error_) error_ = error;
    head_ = (head_ + 1) % kCapacity;
    --count_;
    changed_.notify_all();
  }
}

}  // namespace ringlet
