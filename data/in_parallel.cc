#include "data/in_parallel.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace ringlet::data {

namespace {

/// The error of the thing that comes first, whichever thread met it when.
struct FirstError {
  std::mutex mutex;
  std::int64_t index = -1;
  std::exception_ptr error;

  void note(std::int64_t at) {
    const std::lock_guard lock(mutex);
    if (index >= 0 && index < at) return;
    index = at;
    error = std::current_exception();
  }
};

}  // namespace

void in_parallel(std::int64_t count, int threads, const std::function<void(std::int64_t)>& work,
                 const StopRequest& stop) {
  std::atomic<std::int64_t> next{0};
  FirstError first;
  const auto work_on = [&] {
    for (std::int64_t i = next++; i < count; i = next++) {
      try {
        stop_if(stop);
        work(i);
      } catch (...) {
        first.note(i);
        next = count;  // those before it are under way already
      }
    }
  };
  {
    std::vector<std::jthread> others;
    try {
      for (int t = 1; t < threads && t < count; ++t) others.emplace_back(work_on);
    } catch (const std::system_error&) {  // the system starts no further one; these will do
    }
    work_on();
  }
  if (first.error) std::rethrow_exception(first.error);
}

}  // namespace ringlet::data
