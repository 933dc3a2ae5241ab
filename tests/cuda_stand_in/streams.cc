// The run time's streams, and the work that is put on them.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdlib>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "tests/cuda_stand_in/faults.h"
#include "tests/cuda_stand_in/gpu_memory.h"
#include "tests/cuda_stand_in/runtime.h"

using std::string_view_literals::operator""sv;

namespace ringlet::stand_in {

std::condition_variable_any changed;
std::set<cudaStream_t> streams;

bool run_next(CUstream_st& stream) {
  if (stream.runs) return false;
  stream.runs = true;
  const bool is_done = stream.queue.front()();
  stream.runs = false;
  if (!is_done) return false;
  stream.queue.pop_front();
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
  if (is_broken()) return failed(cudaErrorIllegalAddress);
  return streams.contains(stream) ? cudaSuccess : failed(cudaErrorInvalidResourceHandle);
}

cudaError_t enqueue_waiting(cudaStream_t stream, const char* name, Work work, Kind kind) {
  const Lock lock(mutex);
  if (check_stream(stream) != cudaSuccess) return last_error;
  if (stream->capture == nullptr) {
    const Kind before = std::exchange(stream->newest, kind);
    const bool overtakes = kind == Kind::early_kernel && before != Kind::other &&
                           stream->queue.size() > (stream->runs ? 1 : 0) &&
                           has_fault("early-launches");
    stream->queue.insert(stream->queue.end() - (overtakes ? 1 : 0), std::move(work));
    changed.notify_all();
    return cudaSuccess;
  }
  if (stream->capture->broken) return refuse_broken(*stream->capture);
  Nodes& nodes = stream->capture->nodes;
  nodes.push_back({name, std::move(work), stream->last, kind});
  stream->last = {nodes.size() - 1};
  return cudaSuccess;
}

cudaError_t put(cudaStream_t stream, const char* name, std::function<void()> work, Kind kind) {
  const auto opened = [work = std::move(work), gpus = reach_of(stream->device)] {
    const OpenMemory open(gpus);
    work();
    return true;
  };
  return enqueue_waiting(stream, name, opened, kind);
}

cudaError_t enqueue(cudaStream_t stream, const char* name, std::function<void()> work, Kind kind) {
  const Lock lock(mutex);
  if (check_stream(stream) != cudaSuccess) return last_error;
  if (stream->device != current_device) {
    return refuse(cudaErrorInvalidResourceHandle,
                  fmt::format("{} is launched on a stream of GPU {} while GPU {} is current", name,
                              stream->device, current_device));
  }
  const bool waits = stream->capture != nullptr && name == "matmul"sv &&
                     std::getenv("RINGLET_STAND_IN_CAPTURE") != nullptr;
  if (waits && cudaStreamSynchronize(stream) != cudaSuccess) return last_error;
  return put(stream, name, std::move(work), kind);
}

}  // namespace ringlet::stand_in

using namespace ringlet::stand_in;  // NOLINT(google-build-using-namespace): its own insides

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const Lock lock(mutex);
  if (is_broken()) return failed(cudaErrorIllegalAddress);
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
    return break_capture(*stream->capture, cudaErrorStreamCaptureUnsupported,
                         "cudaStreamSynchronize");
  }
  if (forbidden("cudaStreamSynchronize")) return last_error;
  let_others_run(stream);
  await(lock, [stream] { return drain(*stream); });
  return check_stream(stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const Lock lock(mutex);
  if (check_stream(stream) != cudaSuccess) return last_error;
  if (stream->capture != nullptr) {
    return break_capture(*stream->capture, cudaErrorStreamCaptureUnsupported, "cudaStreamQuery");
  }
  if (forbidden("cudaStreamQuery")) return last_error;
  const bool is_idle = drain(*stream);  // who asks again and again shall get an end
  return is_idle ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaDeviceSynchronize() {
  Lock lock(mutex);
  bool is_captured = false;
  for (const cudaStream_t stream : streams) {  // of any thread, in any mode
    if (stream->device != current_device || stream->capture == nullptr) continue;
    break_capture(*stream->capture, cudaErrorStreamCaptureUnsupported, "cudaDeviceSynchronize");
    is_captured = true;
  }
  if (is_captured || forbidden("cudaDeviceSynchronize")) return last_error;
  let_others_run(nullptr);
  drain_device(lock);
  return cudaSuccess;
}

}  // extern "C"
