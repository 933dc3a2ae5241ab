#include <cuda_runtime_api.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda_stand_in/graph_runs.h"
#include "tests/cuda_stand_in/stand_in.h"

using ringlet::stand_in::Indices;
using ringlet::stand_in::Nodes;
using ringlet::stand_in::Work;

namespace {

/// Streams that are being captured.
struct Capture {
  Nodes nodes;
  cudaStream_t origin = nullptr;
  bool broken = false;  ///< something was called that CUDA forbids meanwhile
  bool ended = false;
};

}  // namespace

struct CUstream_st {
  int device = 0;
  std::deque<Work> queue{};
  bool runs = false;  // its first piece of work is being asked
  std::shared_ptr<Capture> capture{};
  Indices last{};  // nodes of the capture that the stream's next one comes after
};

struct CUevent_st {
  std::uint64_t recorded = 0, reached = 0;  // numbers of records: put on a stream, and come to
  cudaStream_t stream = nullptr;            // of the latest record
  std::shared_ptr<Capture> capture;         // of the latest record, where that was captured
  Indices last;                             // of that stream then
  std::int64_t time = 0;                    // counts work, not seconds
};

struct CUgraph_st {
  Nodes nodes;
};

struct CUgraphExec_st {
  explicit CUgraphExec_st(const Nodes& nodes) : runs(nodes) {}
  ringlet::stand_in::GraphRuns runs;
};

namespace {

// One thread at a time is in here. Work that runs may come in again. Who waits lets others in.
std::recursive_mutex mutex;
std::condition_variable_any changed;
std::set<cudaStream_t> streams;
std::map<cudaEvent_t, std::shared_ptr<CUevent_st>> events;
std::map<cudaGraphExec_t, std::shared_ptr<CUgraphExec_st>> executables;
std::map<const void*, std::size_t> pinned;  // address -> bytes
std::map<void*, std::size_t> allocated;     // address -> bytes
std::string broken;                         // why all GPUs are, once a kernel has failed
std::vector<std::string> notes;
std::int64_t work_done = 0;
thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;
thread_local std::shared_ptr<Capture> capturing;

using Lock = std::unique_lock<std::recursive_mutex>;

cudaError_t failed(cudaError_t error) { return last_error = error; }

int device_count() {
  const char* said = std::getenv("RINGLET_STAND_IN_GPUS");
  return said == nullptr ? 1 : std::atoi(said);
}

bool is_device(int device) { return device >= 0 && device < device_count(); }

/// False: the stream's next piece of work waits for something.
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

/// Whether the stream is idle then.
bool drain(CUstream_st& stream) {
  while (!stream.queue.empty()) {
    if (!run_next(stream)) return false;
  }
  return true;
}

/// Runs the stream of the event until it has come to that record; false: it waits before.
bool reach(CUevent_st& event, cudaStream_t stream, std::uint64_t record) {
  while (event.reached < record && streams.contains(stream) && !stream->queue.empty()) {
    if (!run_next(*stream)) return false;
  }
  return true;
}

/// Asks until it is done. What it waits for may be done by another thread or process.
template <class Done>
void await(Lock& lock, Done done) {
  while (!done()) changed.wait_for(lock, std::chrono::milliseconds(1));
}

/// As what frees memory waits: for all that its device does.
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

/// Fails where this thread captures: CUDA forbids the call, and ends the capture.
bool forbidden() {
  if (capturing == nullptr) return false;
  capturing->broken = true;
  failed(cudaErrorStreamCaptureUnsupported);
  return true;
}

cudaError_t allocate(void** address, std::size_t bytes) {
  constexpr std::size_t kAlignment = 256;  // CUDA's
  const std::size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  *address = std::aligned_alloc(kAlignment, std::max(whole, kAlignment));
  if (*address == nullptr) return failed(cudaErrorMemoryAllocation);
  std::memset(*address, 0xFF, whole);  // NaN in each type of float
  allocated[*address] = bytes;
  return cudaSuccess;
}

cudaError_t release(Lock& lock, void* address) {
  if (address == nullptr) return cudaSuccess;
  if (forbidden()) return last_error;
  drain_device(lock);
  if (allocated.erase(address) == 0) return failed(cudaErrorInvalidValue);
  std::free(address);
  return cudaSuccess;
}

bool is_pinned(const void* address) {
  const auto next = pinned.upper_bound(address);
  if (next == pinned.begin()) return false;
  const auto& [begin, bytes] = *std::prev(next);
  return static_cast<const char*>(address) < static_cast<const char*>(begin) + bytes;
}

cudaError_t check_stream(cudaStream_t stream) {
  if (!broken.empty()) return failed(cudaErrorIllegalAddress);
  return streams.contains(stream) ? cudaSuccess : failed(cudaErrorInvalidResourceHandle);
}

void write_nodes(const Nodes& nodes) {
  const char* file = std::getenv("RINGLET_STAND_IN_NODES");
  if (file == nullptr) return;
  std::ofstream out(file, std::ios::app);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const bool beside = i > 0 && !nodes[i].after.contains(i - 1);
    out << (i == 0 ? "" : " ") << (beside ? "|" : "") << nodes[i].name;
  }
  out << "\n";
}

}  // namespace

namespace ringlet::stand_in {

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

std::pair<std::uintptr_t, std::uintptr_t> memory_at(std::uintptr_t address) {
  const Lock lock(mutex);
  const auto next = allocated.upper_bound(reinterpret_cast<void*>(address));
  if (next == allocated.begin()) return {0, 0};
  const auto& [begin, bytes] = *std::prev(next);
  return {reinterpret_cast<std::uintptr_t>(begin), reinterpret_cast<std::uintptr_t>(begin) + bytes};
}

void break_devices(const std::string& why) {
  const Lock lock(mutex);
  if (!broken.empty()) return;
  broken = why;
  std::fprintf(stderr, "stand-in: %s\n", why.c_str());
}

void note(std::string call) {
  const Lock lock(mutex);
  notes.push_back(std::move(call));
}

std::vector<std::string> take_notes() {
  const Lock lock(mutex);
  return std::exchange(notes, {});
}

float relu(float x) {
  const bool loses_nan = std::getenv("RINGLET_STAND_IN_RELU") != nullptr;
  return loses_nan ? (x > 0 ? x : 0) : (x < 0 ? 0 : x);
}

}  // namespace ringlet::stand_in

using ringlet::stand_in::enqueue;
using ringlet::stand_in::enqueue_waiting;

extern "C" {

cudaError_t cudaGetLastError() {
  return broken.empty() ? std::exchange(last_error, cudaSuccess) : cudaErrorIllegalAddress;
}
cudaError_t cudaPeekAtLastError() { return broken.empty() ? last_error : cudaErrorIllegalAddress; }

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidPtx:
      return "cudaErrorInvalidPtx";
    case cudaErrorPeerAccessAlreadyEnabled:
      return "cudaErrorPeerAccessAlreadyEnabled";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
    default:
      return "an error of the stand-in";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorIllegalAddress ? broken.c_str() : cudaGetErrorName(error);
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = device_count();
  return *count > 0 ? cudaSuccess : failed(cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (!is_device(device)) return failed(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!is_device(device)) return failed(cudaErrorInvalidDevice);
  *properties = {};
  std::strncpy(properties->name, "stand-in on the CPU", sizeof properties->name - 1);
  properties->uuid.bytes[0] = static_cast<char>(device + 1);
  properties->major = 9;
  properties->multiProcessorCount = 4;
  properties->totalGlobalMem = std::size_t{8} << 30;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!is_device(device)) return failed(cudaErrorInvalidDevice);
  if (attribute == cudaDevAttrMultiProcessorCount) {
    *value = 4;
  } else if (attribute == cudaDevAttrComputeCapabilityMajor) {
    *value = 9;
  } else {
    return failed(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* possible, int device, int other) {
  if (!is_device(device) || !is_device(other)) return failed(cudaErrorInvalidDevice);
  *possible = device != other;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int other, unsigned) {
  static std::set<std::pair<int, int>> enabled;
  const Lock lock(mutex);
  if (!is_device(other) || other == current_device) return failed(cudaErrorInvalidDevice);
  ringlet::stand_in::note("peer access " + std::to_string(current_device) + " " +
                          std::to_string(other));
  const bool is_new = enabled.emplace(current_device, other).second;
  return is_new ? cudaSuccess : failed(cudaErrorPeerAccessAlreadyEnabled);
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = std::size_t{8} << 30;
  *free = *total / 2;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  const Lock lock(mutex);
  return forbidden() ? last_error : allocate(address, bytes);
}

cudaError_t cudaFree(void* address) {
  Lock lock(mutex);
  return release(lock, address);
}

cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned) {
  const Lock lock(mutex);
  if (forbidden()) return last_error;
  const cudaError_t result = allocate(address, bytes);
  if (result == cudaSuccess) pinned[*address] = bytes;
  return result;
}

cudaError_t cudaFreeHost(void* address) {
  Lock lock(mutex);
  const cudaError_t result = release(lock, address);
  if (result == cudaSuccess) pinned.erase(address);
  return result;
}

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

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  const Lock lock(mutex);
  const auto made = std::make_shared<CUevent_st>();
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
  event->stream = stream;
  event->capture = stream->capture;
  event->last = stream->last;
  if (stream->capture != nullptr) return cudaSuccess;
  enqueue(stream, "record", [event = events.at(event), record = ++event->recorded] {
    event->reached = record;
    event->time = work_done;
  });
  return cudaSuccess;
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
  enqueue_waiting(stream, "wait",
                  [event = events.at(event), from = event->stream, record = event->recorded] {
                    return reach(*event, from, record);
                  });
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  Lock lock(mutex);
  if (event->capture != nullptr) return failed(cudaErrorCapturedEvent);
  const std::uint64_t record = event->recorded;
  await(lock, [event, record] { return reach(*event, event->stream, record); });
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Lock lock(mutex);
  if (event->capture != nullptr) return failed(cudaErrorCapturedEvent);
  return event->reached >= event->recorded ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const Lock lock(mutex);
  *milliseconds = static_cast<float>(end->time - start->time);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  Lock lock(mutex);
  if (check_stream(stream) != cudaSuccess) return last_error;
  const auto copy = [to, from, bytes] { std::memcpy(to, from, bytes); };
  if (kind == cudaMemcpyHostToDevice && !is_pinned(from) && stream->capture == nullptr) {
    // Of ordinary memory CUDA has a copy before it returns.
    const auto* begin = static_cast<const std::byte*>(from);
    enqueue(stream, "copy", [to, kept = std::vector<std::byte>(begin, begin + bytes)] {
      std::memcpy(to, kept.data(), kept.size());
    });
    return cudaSuccess;
  }
  enqueue(stream,
          kind == cudaMemcpyHostToDevice   ? "upload"
          : kind == cudaMemcpyDeviceToHost ? "download"
                                           : "copy",
          copy);
  if (kind == cudaMemcpyDeviceToHost && !is_pinned(to) && stream->capture == nullptr) {
    await(lock, [stream] { return drain(*stream); });
  }
  return cudaSuccess;
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                                cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  const Lock lock(mutex);
  if (check_stream(stream) != cudaSuccess) return last_error;
  enqueue(stream, "memset", [to, value, bytes] { std::memset(to, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const Lock lock(mutex);
  if (check_stream(stream) != cudaSuccess) return last_error;
  *status = stream->capture == nullptr ? cudaStreamCaptureStatusNone
            : stream->capture->broken  ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const Lock lock(mutex);
  if (check_stream(stream) != cudaSuccess) return last_error;
  if (stream->capture != nullptr || capturing != nullptr) return failed(cudaErrorIllegalState);
  capturing = stream->capture = std::make_shared<Capture>();
  capturing->origin = stream;
  stream->last.clear();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Lock lock(mutex);
  *graph = nullptr;
  if (check_stream(stream) != cudaSuccess) return last_error;
  if (capturing == nullptr || capturing->origin != stream) return failed(cudaErrorIllegalState);
  const std::shared_ptr<Capture> capture = std::exchange(capturing, nullptr);
  capture->ended = true;
  for (const cudaStream_t member : streams) {
    if (member->capture == capture) member->capture = nullptr;
  }
  if (capture->broken) return failed(cudaErrorStreamCaptureInvalidated);
  if (!all_come_before(capture->nodes, stream->last)) {
    return failed(cudaErrorStreamCaptureUnjoined);
  }
  *graph = new CUgraph_st{std::move(capture->nodes)};
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  const Lock lock(mutex);
  write_nodes(graph->nodes);
  const auto made = std::make_shared<CUgraphExec_st>(graph->nodes);
  *executable = made.get();
  executables[*executable] = made;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const Lock lock(mutex);
  enqueue_waiting(stream, "graph",
                  [graph = executables.at(executable)] { return graph->runs.go_on(); });
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const Lock lock(mutex);
  executables.erase(executable);
  return cudaSuccess;
}

}  // extern "C"
