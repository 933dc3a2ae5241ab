// Fork and join for the threads of one replica (--threads). The caller works too, so a pool of one
// has no thread of its own.
//
// Kernels fork and join hundreds of times a step, often for less time than waking a thread takes.
// So a thread that waits spins for a moment before it sleeps, and yields between its looks: other
// threads, and other processes, may want the processor. It does not spin where the pools of the
// process have more threads than there are processors: it might keep the one from running that it
// awaits.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace ringlet {

class ThreadPool {
 public:
  /// `threads` >= 1, the caller's among them. Throws std::system_error where the system starts no
  /// further one.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls `body(begin, end, thread)` on up to threads() contiguous parts of [0, n) at once and
  /// returns when all have ended. The parts depend on n and threads() alone. The first exception is
  /// rethrown. Not reentrant. Allocates nothing.
  template <class F>
  void parallel_for(std::int64_t n, F&& body) {
    if (n <= 0) return;
    if (workers_.empty() || n == 1) {
      body(std::int64_t{0}, n, 0);
      return;
    }
    const Body erased = [](void* context, std::int64_t begin, std::int64_t end, int thread) {
      (*static_cast<std::remove_reference_t<F>*>(context))(begin, end, thread);
    };
    fork_join(n, erased, const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  using Body = void (*)(void* context, std::int64_t begin, std::int64_t end, int thread);
  void fork_join(std::int64_t n, Body body, void* context);
  void run_part(int thread);
  /// Returns when `value` is no longer `old`.
  void wait_for_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) const;
  void work(int thread);
  void end();  ///< of the workers

  const int processors_;  // that this process may use
  std::vector<std::thread> workers_;
  std::atomic<std::uint32_t> round_{0};    // counts forks; workers wait for it to change
  std::atomic<std::uint32_t> running_{0};  // workers that have not ended the round yet
  std::atomic<bool> stop_{false};
  std::int64_t n_ = 0;
  Body body_ = nullptr;
  void* context_ = nullptr;
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

}  // namespace ringlet
