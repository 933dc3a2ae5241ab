// The run time's streams, and the work that is put on them.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <set>
#include <utility>

#include "tests/cuda_stand_in/runtime.h"

namespace ringlet::stand_in {

std::condition_variable_any changed;
std::set<cudaStream_t> streams;
std::int64_t work_done = 0;

bool run_next(CUstream_st& stream) {
  if (stream.runs) return false;
  stream.runs = true;
  const bool is_done = stream.queue.front()();
  stream.runs = false;
  if (!is_done) return false;
  stream.queue.pop_front();
  ++work_done;
  changed.notify_all();
  return true;
}

bool drain(CUstream_st& stream) {
  while (!stream.queue.empty()) {
    if (!run_next(stream)) return false;
  }
  return true;
}

void drain_device(Lock& lock) {
  for (const cudaStream_t stream : std::set(streams)) {
    const auto is_gone_or_idle = [&] { return !streams.contains(stream) || drain(*stream); };
    if (stream->device == current_device) {
      await(lock, is_gone_or_idle);
    } else {
      is_gone_or_idle();
    }
  }
}

cudaError_t check_stream(cudaStream_t stream) {
  if (!broken.empty()) return failed(cudaErrorIllegalAddress);
  return streams.contains(stream) ? cudaSuccess : failed(cudaErrorInvalidResourceHandle);
}

void enqueue_waiting(cudaStream_t stream, const char* name, Work work) {
  const Lock lock(mutex);
  if (!streams.contains(stream)) {
    failed(cudaErrorInvalidResourceHandle);
    return;
  }
  if (stream->capture == nullptr) {
    stream->queue.push_back(std::move(work));
    changed.notify_all();
    return;
  }
  Nodes& nodes = stream->capture->nodes;
  nodes.push_back({name, std::move(work), stream->last});
  stream->last = {nodes.size() - 1};
}

void enqueue(cudaStream_t stream, const char* name, std::function<void()> work) {
  enqueue_waiting(stream, name, [work = std::move(work)] {
    work();
    return true;
  });
}

}  // namespace ringlet::stand_in

using namespace ringlet::stand_in;  // NOLINT(google-build-using-namespace): its own insides

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const Lock lock(mutex);
  *stream = new CUstream_st{.device = current_device};
  streams.insert(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  Lock lock(mutex);
  if (check_stream(stream) != cudaSuccess) return last_error;
  await(lock, [stream] { return drain(*stream); });
  streams.erase(stream);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  Lock lock(mutex);
  if (check_stream(stream) != cudaSuccess) return last_error;
  if (stream->capture != nullptr) {
    stream->capture->broken = true;
    return failed(cudaErrorStreamCaptureUnsupported);
  }
  await(lock, [stream] { return drain(*stream); });
  return check_stream(stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const Lock lock(mutex);
  if (check_stream(stream) != cudaSuccess) return last_error;
  const bool is_idle = drain(*stream);  // who asks again and again shall get an end
  return is_idle ? cudaSuccess : cudaErrorNotReady;
}

}  // extern "C"
