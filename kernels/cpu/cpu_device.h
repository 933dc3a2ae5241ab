// The CPU as a device: its compute stream runs in place, its communication stream has a thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "kernels/cpu/thread_pool.h"
#include "kernels/device.h"
#include "kernels/record_count.h"
#include "kernels/task_queue.h"

namespace ringlet {

class CpuDevice;

/// Reached when what was handed to the stream before its latest record has run.
class CpuEvent : public Event {
 public:
  void synchronize() override { records.wait_until(records.latest()); }
  bool reached() override { return records.is_reached(records.latest()); }

  RecordCount records;
};

/// What CPU kernels see of a stream. Kernels split their work over outputs only, so that no bit of
/// a result depends on the number of threads.
class CpuStream : public Stream {
 public:
  static constexpr DeviceKind kKind = DeviceKind::cpu;

  CpuStream(CpuDevice& device, const char* name, ThreadPool* pool, const DeviceOptions& options);
  ~CpuStream() override;

  int threads() const { return pool_ == nullptr ? 1 : pool_->threads(); }
  InstructionSet isa() const { return isa_; }
  /// The instructions that it takes for products of bf16.
  Bf16Products bf16_products() const { return bf16_products_; }

  /// Calls `body(begin, end, thread)` on contiguous parts of [0, n), 0 <= thread < threads().
  template <class F>
  void parallel_for(std::int64_t n, F&& body) {
    if (pool_ != nullptr) {
      pool_->parallel_for(n, std::forward<F>(body));
    } else if (n > 0) {
      body(std::int64_t{0}, n, 0);
    }
  }

  /// Not for use inside a parallel_for: divide it by thread beforehand.
  void* workspace(std::int64_t bytes) override;
  template <class T>
  T* workspace_of(std::int64_t count) {
    return static_cast<T*>(workspace(count * static_cast<std::int64_t>(sizeof(T))));
  }

  /// More such memory, for what becomes f32 on its way into a kernel (in_f32.h). Each of
  /// the kScratches grows by itself: the addresses of the others stay.
  static constexpr int kScratches = 6;
  void* scratch(int index, std::int64_t bytes);

  void run(Task&& task) override;
  void record(Event& event) override;
  void wait(Event& event) override;
  void synchronize() override {}

 private:
  ThreadPool* pool_;
  InstructionSet isa_;
  Bf16Products bf16_products_;
  struct Memory {
    void* data = nullptr;
    std::int64_t bytes = 0;
  };
  void* grown(Memory& memory, std::int64_t bytes);

  Memory workspace_;
  std::array<Memory, kScratches> scratches_;
};

/// A CPU stream whose tasks run on a thread of its own.
class CpuQueueStream final : public CpuStream {
 public:
  CpuQueueStream(CpuDevice& device, const char* name, const DeviceOptions& options);

  void run(Task&& task) override;
  void record(Event& event) override;
  void wait(Event& event) override;
  void synchronize() override { queue_.synchronize(); }

 private:
  TaskQueue queue_;
};

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(DeviceId id, const DeviceOptions& options = {});

  Stream& compute() override { return compute_; }
  Stream& communication() override { return *communication_; }
  std::unique_ptr<Event> make_event() override { return std::make_unique<CpuEvent>(); }

 protected:
  void* do_allocate(std::int64_t bytes) override;
  void do_deallocate(void* address, std::int64_t bytes) noexcept override;

 private:
  ThreadPool pool_;
  CpuStream compute_;
  std::unique_ptr<CpuStream> communication_;
};

}  // namespace ringlet
