#include "kernels/cuda/autotune.h"

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/capture.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/memory.h"

namespace ringlet {

namespace {

constexpr int kRounds = 3;
constexpr int kLaunches = 8;  // between two events

/// An event that knows the time, unlike those that order streams.
class TimingEvent {
 public:
  TimingEvent() { check_cuda(cudaEventCreate(&handle_), "cudaEventCreate"); }
  ~TimingEvent() { cudaEventDestroy(handle_); }
  TimingEvent(const TimingEvent&) = delete;
  TimingEvent& operator=(const TimingEvent&) = delete;

  void record(CudaStream& stream) {
    check_cuda(cudaEventRecord(handle_, stream.handle()), "cudaEventRecord");
  }
  float milliseconds_since(const TimingEvent& start) const {
    check_cuda(cudaEventSynchronize(handle_), "cudaEventSynchronize");
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, start.handle_, handle_), "cudaEventElapsedTime");
    return milliseconds;
  }

 private:
  cudaEvent_t handle_ = nullptr;
};

void copy_bytes(CudaStream& stream, void* to, const void* from, std::int64_t bytes) {
  check_cuda(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice,
                             stream.handle()),
             "cudaMemcpyAsync");
}

/// While it lives, the stream notes nothing: what is tried is no part of a step.
class WithoutNotes {
 public:
  explicit WithoutNotes(CudaStream& stream) : stream_(stream), notes_(stream.notes()) {
    stream_.set_notes(nullptr);
  }
  ~WithoutNotes() { stream_.set_notes(notes_); }
  WithoutNotes(const WithoutNotes&) = delete;
  WithoutNotes& operator=(const WithoutNotes&) = delete;

 private:
  CudaStream& stream_;
  std::vector<std::string>* notes_;
};

/// The launches as a graph. One by one, a product of a few microseconds is over before the host has
/// launched the next, and its time would be the host's. Null where they cannot be captured.
std::unique_ptr<Graph> captured(CudaStream& stream, const std::function<bool()>& launch) {
  if (!stream.can_capture()) return nullptr;
  const WithoutNotes aside(stream);
  bool launched = true;
  const auto enqueue = [&] {
    for (int i = 0; i < kLaunches; ++i) launched = launch() && launched;
  };
  try {
    std::unique_ptr<Graph> graph = capture(stream, enqueue);
    return launched ? std::move(graph) : nullptr;
  } catch (const DeviceError&) {
    return nullptr;
  }
}

}  // namespace

bool may_autotune(const CudaStream& stream) {
  if (!stream.autotune()) return false;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(stream.handle(), &status), "cudaStreamIsCapturing");
  return status == cudaStreamCaptureStatusNone;
}

int fastest(int candidates, const std::function<std::optional<float>(int)>& time_of) {
  int best = 0;
  float best_time = std::numeric_limits<float>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    for (int candidate = 0; candidate < candidates; ++candidate) {
      const std::optional<float> time = time_of(candidate);
      if (!time || *time >= best_time) continue;
      best = candidate;
      best_time = *time;
    }
  }
  return best;
}

int fastest(CudaStream& stream, int candidates, const TunedOutput& output,
            const std::function<bool(int)>& launch) {
  Buffer kept;
  if (output.is_read) {
    kept = Buffer(stream.device(), output.bytes);
    copy_bytes(stream, kept.data(), output.address, output.bytes);
  }
  stream.handle();  // makes the device current, for the events
  TimingEvent start, end;
  const int best = fastest(candidates, [&](int candidate) -> std::optional<float> {
    if (!launch(candidate)) return std::nullopt;
    const std::unique_ptr<Graph> graph = captured(stream, [&] { return launch(candidate); });
    if (graph) stream.launch(*graph);  // untimed: the GPU is busy when the clock starts
    start.record(stream);
    if (graph) {
      stream.launch(*graph);
    } else {
      for (int i = 0; i < kLaunches; ++i) {
        if (!launch(candidate)) return std::nullopt;
      }
    }
    end.record(stream);
    return end.milliseconds_since(start);
  });
  if (output.is_read) copy_bytes(stream, output.address, kept.data(), output.bytes);
  stream.synchronize();  // before `kept` goes
  return best;
}

}  // namespace ringlet
