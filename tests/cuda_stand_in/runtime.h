// What the parts of the stand-in's run time share: device.cc, memory.cc, streams.cc, events.cc,
// capture.cc.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "tests/cuda_stand_in/graph_runs.h"
#include "tests/cuda_stand_in/stand_in.h"

namespace ringlet::stand_in {

/// Streams that are being captured.
struct Capture {
  Nodes nodes;
  cudaStream_t origin = nullptr;
  cudaStreamCaptureMode mode{};
  bool broken = false;  ///< something was called that CUDA forbids meanwhile
  std::string why;      ///< that call
  bool ended = false;
};

}  // namespace ringlet::stand_in

struct CUstream_st {
  int device = 0;
  std::deque<ringlet::stand_in::Work> queue{};
  bool runs = false;  // its first piece of work is being asked
  ringlet::stand_in::Kind newest = ringlet::stand_in::Kind::other;  // of the queue's last work
  std::shared_ptr<ringlet::stand_in::Capture> capture{};
  ringlet::stand_in::Indices last{};  // nodes of the capture that the stream's next one comes after
};

namespace ringlet::stand_in {

// One thread at a time is in here. Work that runs may come in again. Who waits lets others in.
extern std::recursive_mutex mutex;
using Lock = std::unique_lock<std::recursive_mutex>;
extern std::condition_variable_any changed;

extern thread_local int current_device;
extern thread_local cudaError_t last_error;
extern thread_local std::shared_ptr<Capture> capturing;

bool is_broken();  ///< all GPUs are, once a kernel has failed
inline cudaError_t failed(cudaError_t error) { return last_error = error; }
/// Fails, and says why where the error's text is asked for.
cudaError_t refuse(cudaError_t error, const std::string& why);
bool is_device(int device);
/// Notes a call that makes a context on the current GPU, where there is none.
void note_context();
std::size_t memory_of_a_gpu();  ///< bytes

/// Fails where all GPUs are broken. Fails where this thread captures, or any does in global mode:
/// CUDA forbids the call, and ends the capture. A capture in relaxed mode forbids nothing.
bool forbidden(const char* call);
/// Fails, and ends the capture: the call asks how far something is that is captured.
cudaError_t break_capture(Capture& capture, cudaError_t error, const char* call);
cudaError_t refuse_broken(const Capture& capture);

extern std::set<cudaStream_t> streams;
cudaError_t check_stream(cudaStream_t stream);
/// Puts work on a stream that is good, whichever GPU is current. Memory is open to it.
cudaError_t put(cudaStream_t stream, const char* name, std::function<void()> work,
                Kind kind = Kind::other);
/// False: the stream's next piece of work waits for something.
bool run_next(CUstream_st& stream);
/// Whether the stream is idle then.
bool drain(CUstream_st& stream);
/// To be called before a host thread waits for a stream, or for a point in it. Three ways take
/// turns with the other streams, of all threads: they stay as they are, and so as late as may be;
/// they run first, as far as they can without the one that is waited for; or all run side by side
/// in threads, and wait for each other by their events alone. So where a stream fails to wait for
/// another, whichever should, some way gives wrong results, and the thread sanitizer tells of it.
void let_others_run(const CUstream_st* waited);
/// Whether the calling thread runs a stream beside others. It then leaves theirs to them.
bool runs_beside_others();
/// As what frees memory waits: for all that its device does.
void drain_device(Lock& lock);

/// Asks until it is done. What it waits for may be done by another thread or process.
template <class Done>
void await(Lock& lock, Done done) {
  while (!done()) changed.wait_for(lock, std::chrono::milliseconds(1));
}

}  // namespace ringlet::stand_in
