// A GPU as a device: two CUDA streams, and a host thread that launches on the second one.
//
//   compute         launches from the thread that calls; the GPU works behind it
//   communication   tasks run on a host thread of its own (or in place, without overlap), because a
//                   collective waits on the host for its peers before it launches
//
// Events order work on the GPU. CUDA takes a wait for an event that was never recorded as no wait
// at all. So a wait for an event that another host thread has yet to record blocks the calling host
// thread until that record is launched (never until it is reached).
//
// This header needs none of CUDA's, so that any file may include it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/device.h"
#include "kernels/memory.h"
#include "kernels/record_count.h"
#include "kernels/task_queue.h"

struct CUevent_st;      // cudaEvent_t
struct CUgraphExec_st;  // cudaGraphExec_t
struct CUstream_st;     // cudaStream_t

namespace ringlet {

class CudaDevice;
class CudaLibraries;

namespace impl {
/// The code of our kernels that the current device runs: it depends on what they were compiled for,
/// too.
struct KernelCode {
  int missing = 0;             ///< cudaError_t that says why there is none
  bool awaits_inputs = false;  ///< where it was launched early (cuda_grid.cuh)
};
KernelCode kernel_code();
}  // namespace impl

/// Its record numbers are reached when the record is launched, not when the GPU comes to it.
class CudaEvent final : public Event {
 public:
  explicit CudaEvent(int device);
  ~CudaEvent() override;
  CUevent_st* handle() const { return handle_; }
  void synchronize() override;
  bool reached() override;

  RecordCount launched;

 private:
  int device_;
  CUevent_st* handle_ = nullptr;
};

class CudaGraph final : public Graph {
 public:
  explicit CudaGraph(CUgraphExec_st* handle) : handle_(handle) {}
  ~CudaGraph() override;
  CUgraphExec_st* handle() const { return handle_; }

 private:
  CUgraphExec_st* handle_;
};

/// What CUDA kernels see of a stream.
class CudaStream : public Stream {
 public:
  static constexpr DeviceKind kKind = DeviceKind::cuda;

  CudaStream(CudaDevice& device, const char* name, const DeviceOptions& options);
  ~CudaStream() override;

  /// The CUDA stream. Makes its device the current one of the calling thread, as launches need.
  CUstream_st* handle() const;
  int multiprocessors() const { return multiprocessors_; }
  /// Whether a grid of so many blocks is launched before the kernel in front of it has ended
  /// (cuda_grid.cuh): one that leaves that kernel room, on a GPU and in code of compute capability
  /// 9.0 or newer.
  bool launches_early(std::int64_t blocks) const {
    return early_launches_ && blocks <= multiprocessors_;
  }
  bool tf32() const { return tf32_; }
  bool deterministic() const { return deterministic_; }
  bool autotune() const { return autotune_; }
  /// Whether libraries are asked to add biases and apply ReLU within a product.
  bool fuses() const { return fuses_; }
  /// Whether gradients of filters may be summed from narrow factors as they are.
  bool sums_narrow() const { return sums_narrow_; }

  bool in_order_with_host() const override { return false; }
  /// Outgrown memory is kept as long as the stream.
  void* workspace(std::int64_t bytes) override;
  template <class T>
  T* workspace_of(std::int64_t count) {
    return static_cast<T*>(workspace(count * static_cast<std::int64_t>(sizeof(T))));
  }

  /// At least `count` zeros, to count the blocks that are through. Who uses them leaves them 0.
  unsigned* tickets(std::int64_t count);

  /// cuBLASLt and cuDNN for this stream, opened at the first call.
  CudaLibraries& libraries();

  void run(Task&& task) override { task(); }
  void record(Event& event) override;
  void wait(Event& event) override;
  void synchronize() override;
  void flush() override {}

  bool can_capture() const override { return can_capture_; }
  void begin_capture() override;
  std::unique_ptr<Graph> end_capture() override;
  void launch(Graph& graph) override;

  /// See branch.h. begin_branch() is false, and does nothing, where the stream is not captured, is
  /// in a branch already, or branches are switched off.
  bool begin_branch();
  void end_branch() noexcept;
  void join_branch();

 protected:
  void launch_record(CudaEvent& event, std::uint64_t record);
  void launch_wait(const CudaEvent& event, std::uint64_t record);

 private:
  CUstream_st* handle_ = nullptr;
  int multiprocessors_ = 0;
  bool early_launches_ = false;
  bool tf32_;
  bool deterministic_;
  bool autotune_;
  bool can_capture_, can_branch_, fuses_, sums_narrow_;  // unless switched off: base/switches.h
  std::unique_ptr<CudaLibraries> libraries_;

  /// What kernels use beside their operands. Outgrown memory stays: kernels under way use it, and
  /// captured graphs may for ever.
  struct Scratch {
    std::vector<Buffer> workspaces, tickets;  // the last one of each is in use
  };
  bool make_room(std::vector<Buffer>& buffers, std::int64_t bytes);
  void make_tickets(Scratch& scratch, std::int64_t bytes);
  Scratch& scratch() { return aside_ ? side_->scratch : scratch_; }
  Scratch scratch_;

  /// Where a branch's work goes. It runs beside the stream's, and so has scratch memory of its own.
  struct Side {
    explicit Side(int device);
    ~Side();
    Side(const Side&) = delete;
    Side& operator=(const Side&) = delete;
    CUstream_st* handle;
    CudaEvent forks, joins;
    Scratch scratch;
  };
  void go_aside(bool aside);
  std::unique_ptr<Side> side_;  // made by the first capture
  bool captures_ = false;
  bool aside_ = false;     // in a branch
  bool branched_ = false;  // since the last join_branch()
};

/// A CUDA stream that is launched to from a host thread of its own.
class CudaQueueStream final : public CudaStream {
 public:
  CudaQueueStream(CudaDevice& device, const char* name, const DeviceOptions& options);

  void run(Task&& task) override;
  void record(Event& event) override;
  void wait(Event& event) override;
  void synchronize() override;
  void flush() override { queue_.synchronize(); }
  bool can_capture() const override { return false; }

 private:
  TaskQueue queue_;
};

class CudaDevice final : public Device {
 public:
  /// Throws DeviceError naming the remedy when there is no such GPU, or no driver for it.
  explicit CudaDevice(DeviceId id, const DeviceOptions& options = {});
  ~CudaDevice() override;

  Stream& compute() override { return *compute_; }
  Stream& communication() override { return *communication_; }
  Stream& transfer() override;
  std::unique_ptr<Event> make_event() override { return std::make_unique<CudaEvent>(id().index); }
  /// Enables peer access at the first call for another GPU. Any thread.
  bool reads_memory_of(DeviceId other) const override;
  std::int64_t free_bytes() const override;
  std::int64_t scratch_limit() const override { return scratch_limit_; }
  void* allocate_host(std::int64_t bytes) override;
  void deallocate_host(void* address) noexcept override;

 protected:
  void* do_allocate(std::int64_t bytes) override;
  void do_deallocate(void* address, std::int64_t bytes) noexcept override;

 private:
  DeviceOptions options_;
  std::int64_t scratch_limit_;
  mutable std::mutex reach_mutex_;
  mutable std::map<int, bool> reach_;  // by GPU: whether its memory can be read
  std::unique_ptr<CudaStream> compute_;
  std::unique_ptr<CudaStream> communication_;
  std::unique_ptr<CudaStream> transfer_;  // made when it is first asked for
};

}  // namespace ringlet
