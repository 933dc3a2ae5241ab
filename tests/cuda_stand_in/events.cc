// The run time's events.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>

#include "tests/cuda_stand_in/runtime.h"

using namespace ringlet::stand_in;  // NOLINT(google-build-using-namespace): its own insides

struct CUevent_st {
  int device = 0;
  bool keeps_time = true;
  std::uint64_t recorded = 0;              // number of the latest record that was put on a stream
  std::atomic<std::uint64_t> reached = 0;  // and of the latest that a stream came to
  cudaStream_t stream = nullptr;           // of the latest record
  std::shared_ptr<Capture> capture;        // of the latest record, where that was captured
  Indices last;                            // of that stream then
  std::chrono::steady_clock::time_point time;
};

namespace {

std::map<cudaEvent_t, std::shared_ptr<CUevent_st>> events;

/// Runs the stream of the event until it has come to that record; false: it waits before.
bool reach(CUevent_st& event, cudaStream_t stream, std::uint64_t record) {
  if (runs_beside_others()) return event.reached >= record;
  while (event.reached < record && streams.contains(stream) && !stream->queue.empty()) {
    if (!run_next(*stream)) return false;
  }
  return true;
}

/// Fails for an event of a capture, and where forbidden() does.
bool is_captured(const CUevent_st& event, const char* call) {
  if (event.capture == nullptr) return forbidden(call);
  break_capture(*event.capture, cudaErrorCapturedEvent, call);
  return true;
}

}  // namespace

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  const Lock lock(mutex);
  if (is_broken()) return failed(cudaErrorIllegalAddress);
  const auto made = std::make_shared<CUevent_st>();
  made->device = current_device;
  made->keeps_time = (flags & cudaEventDisableTiming) == 0;
  *event = made.get();
  events[*event] = made;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Lock lock(mutex);
  events.erase(event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Lock lock(mutex);
  if (check_stream(stream) != cudaSuccess) return last_error;
  if (event->device != stream->device) {
    return refuse(cudaErrorInvalidResourceHandle,
                  fmt::format("an event of GPU {} is recorded on a stream of GPU {}", event->device,
                              stream->device));
  }
  event->stream = stream;
  event->capture = stream->capture;
  event->last = stream->last;
  if (stream->capture != nullptr) return cudaSuccess;
  return enqueue_waiting(stream, "record", [event = events.at(event), record = ++event->recorded] {
    event->time = std::chrono::steady_clock::now();
    event->reached = record;
    return true;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Lock lock(mutex);
  if (check_stream(stream) != cudaSuccess) return last_error;
  if (event->capture != nullptr) {  // the stream joins the capture
    if (event->capture->ended) return failed(cudaErrorCapturedEvent);
    if (stream->capture == nullptr) stream->last.clear();
    stream->capture = event->capture;
    stream->last.insert(event->last.begin(), event->last.end());
    return cudaSuccess;
  }
  if (stream->capture != nullptr) return failed(cudaErrorStreamCaptureIsolation);
  return enqueue_waiting(
      stream, "wait", [event = events.at(event), from = event->stream, record = event->recorded] {
        return reach(*event, from, record);
      });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  Lock lock(mutex);
  if (is_captured(*event, "cudaEventSynchronize")) return last_error;
  const std::uint64_t record = event->recorded;
  if (event->reached < record) let_others_run(event->stream);
  await(lock, [event, record] { return reach(*event, event->stream, record); });
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Lock lock(mutex);
  if (is_captured(*event, "cudaEventQuery")) return last_error;
  return event->reached >= event->recorded ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const Lock lock(mutex);
  if (start->device != end->device || !start->keeps_time || !end->keeps_time) {
    return failed(cudaErrorInvalidResourceHandle);
  }
  if (start->reached < start->recorded || end->reached < end->recorded) return cudaErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return cudaSuccess;
}

}  // extern "C"
