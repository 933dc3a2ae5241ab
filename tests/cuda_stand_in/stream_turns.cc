// Which streams run, and how, when a host thread waits for one of them.
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "tests/cuda_stand_in/runtime.h"

namespace ringlet::stand_in {

namespace {

std::uint64_t waits = 0;
thread_local bool beside = false;

/// Runs the stream until its end, or until nobody here moves any more. `awake`: streams that do.
/// What the thread sanitizer sees is the events alone.
void run_beside(CUstream_st& stream, std::atomic<int>& awake) {
  beside = true;
  bool sleeps = false;
  while (!stream.queue.empty()) {
    const bool is_alone = sleeps && awake.load(std::memory_order_relaxed) == 0;
    if (stream.queue.front()()) {
      stream.queue.pop_front();
      if (sleeps) awake.fetch_add(1, std::memory_order_relaxed);
      sleeps = false;
    } else {
      if (is_alone) return;
      if (!sleeps) awake.fetch_sub(1, std::memory_order_relaxed);
      sleeps = true;
      std::this_thread::yield();
    }
  }
  if (!sleeps) awake.fetch_sub(1, std::memory_order_relaxed);
}

/// Nobody comes into the stand-in meanwhile.
void run_side_by_side(const std::vector<cudaStream_t>& ready) {
  std::atomic<int> awake = static_cast<int>(ready.size());
  std::vector<std::thread> threads;
  for (const cudaStream_t stream : ready) {
    stream->runs = true;
    threads.emplace_back([stream, &awake] { run_beside(*stream, awake); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const cudaStream_t stream : ready) stream->runs = false;
  changed.notify_all();
}

}  // namespace

bool runs_beside_others() { return beside; }

void let_others_run(const CUstream_st* waited) {
  const std::uint64_t way = waits++ % 3;
  std::vector<cudaStream_t> ready;
  for (const cudaStream_t stream : streams) {
    if (!stream->runs && !stream->queue.empty()) ready.push_back(stream);
  }
  if (way == 1) {
    for (const cudaStream_t stream : ready) {
      if (stream != waited) drain(*stream);
    }
  }
  if (way == 2 && ready.size() > 1) run_side_by_side(ready);
}

}  // namespace ringlet::stand_in
