// TaskQueue: a host thread that runs what it is handed, in order. Streams that work beside the
// caller's thread are built on it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/stream.h"

namespace ringlet {

class TaskQueue {
 public:
  /// `at_start` is run first, on the queue's thread.
  explicit TaskQueue(std::function<void()> at_start = {});
  /// Runs everything that was handed over before, then ends the thread.
  ~TaskQueue();
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  /// Blocks while the queue is full. After a task has thrown, the ones that follow are dropped
  /// until synchronize() has thrown its error.
  void run(Task task) { push(task, false); }
  /// A task that runs even after an error: events, so that nobody waits for ever.
  void run_always(Task task) { push(task, true); }
  /// Whether the calling thread is the queue's own: the caller is one of its tasks.
  bool is_running_here() const { return worker_.get_id() == std::this_thread::get_id(); }
  /// Threads of all queues of the process, for those who ask who wants a processor.
  static int threads();
  /// Waits until nothing is left, and throws the first error of the tasks.
  void synchronize();

 private:
  struct Entry {
    Task task;
    bool always = false;
  };
  static constexpr std::size_t kCapacity = 1024;
  void push(Task task, bool always);
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Entry> ring_;
  std::size_t head_ = 0;   // the next entry to run
  std::size_t count_ = 0;  // entries waiting, and the one that runs
  bool stop_ = false;
  std::exception_ptr error_;
  std::thread worker_;
};

}  // namespace ringlet
