// A stand-in for GPUs: what Ringlet calls of the CUDA run time (runtime.h), cuDNN (cudnn.cc),
// cuBLASLt (cublas_lt.cc) and NCCL (nccl.cc), as shared libraries that work on the CPU. Ringlet's
// own CUDA back end runs on them unchanged: devices, streams, events, captured graphs, plans,
// packs, autotuning. Of its kernels the threads run on the host
// (include/kernels/cuda/cuda_grid.cuh). In the preset `ptx` nvcc compiles them, and what it wrote
// is run (ptx/block.h).
//
// It is as late as CUDA may be. What is put on a stream runs when somebody waits for it, and
// not before; by turns, when somebody waits for any stream, or beside the others (runtime.h). The
// nodes of a graph run in orders that its edges alone permit (graph_runs.h). Memory is full of NaN
// when it is allocated. So a missing wait and a missing copy give wrong results here. What CUDA
// forbids while a stream is captured fails here as well.
//
// It says nothing of speed. Of what the real libraries choose it knows cuDNN's plans, where the
// real one is asked for them.
//
//   RINGLET_STAND_IN_GPUS=N                GPUs that are there; default 1
//   RINGLET_STAND_IN_MEMORY=MIB            memory of each; default 8192
//   RINGLET_STAND_IN_CAPABILITY=75         compute capability 7.5; default 9.0
//   RINGLET_STAND_IN_PTX=80                what kernels were compiled for; 0: for other GPUs
//   RINGLET_STAND_IN_PLANNER=cudnn         plans come from the real cuDNN, for a described H100
//   RINGLET_STAND_IN_RELU=loses-nan        the libraries' ReLU makes 0 of NaN
//   RINGLET_STAND_IN_NCCL=refuses-capture  NCCL fails where its stream is captured
//   RINGLET_STAND_IN_CAPTURE=breaks        a product waits for its stream, which ends a capture
//   RINGLET_STAND_IN_NODES=FILE            a line of nodes for each graph; | where two may overlap
//   RINGLET_STAND_IN_FAULT=NAME            something that can be switched off is wrong (faults.h)
//
// The host cannot touch a GPU's memory, nor can another GPU without peer access (gpu_memory.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ringlet::stand_in {

/// What CUDA knows of work beside what it does.
enum class Kind : std::uint8_t {
  other,         ///< a copy, an event's record, a graph
  kernel,        ///< begins when the one before it in the stream has ended
  early_kernel,  ///< may begin before a kernel in front of it has ended, and wait there
};

/// A launch: puts work on the stream; while it is captured, into its graph. Fails where the stream
/// is not of the current GPU. `name` is for the list of nodes.
cudaError_t enqueue(cudaStream_t stream, const char* name, std::function<void()> work,
                    Kind kind = Kind::kernel);
/// Work that may have to wait for another stream, thread or process. It gives false as long as it
/// is not done, and is then asked again.
using Work = std::function<bool()>;
cudaError_t enqueue_waiting(cudaStream_t stream, const char* name, Work work,
                            Kind kind = Kind::other);

/// The allocation that holds the address, [begin, end); else the one before it, or an empty one.
std::pair<std::uintptr_t, std::uintptr_t> memory_at(std::uintptr_t address);
/// The GPU that has all of these bytes; kNoGpu: none.
int gpu_of(const void* address, std::size_t bytes);
inline constexpr int kNoGpu = -1;
/// Waits for nothing, as ncclMemFree.
cudaError_t free_at_once(void* address);
/// Whose memory the work of a GPU reaches: its own, and that of peers to which access is enabled.
std::set<int> reach_of(int gpu);

/// Takes what tells whether a kernel of another GPU of this process waits for work that `gpu` has
/// not been given yet. The thread that would give it asks CUDA for no memory then: CUDA may hold it
/// back until that kernel ends, which is never.
void tell_of_waiting(bool (*is_awaited)(int gpu));

/// To be called in the midst of a grid: where another lane of the graph runs a grid as well
/// (graph_runs.h), returns when that has come to its midst.
void meet_other_lane();

/// Counts the blocks of a grid that are through in the stream's tickets, as a GPU does. Tells where
/// somebody else counts in them.
class TeamCount {
 public:
  TeamCount(const char* name, unsigned* tickets, std::int64_t teams, std::int64_t size);
  /// Whether the block that is through is the last of its team.
  bool is_last(std::int64_t team);

 private:
  const char* name_;
  unsigned* tickets_;
  unsigned size_;
  std::int64_t blocks_left_;
  std::vector<unsigned> own_;
};

/// A kernel has failed. What is asked of any GPU from now on fails too, as in CUDA, and says why.
void break_devices(const std::string& why);

/// Calls that leave nothing behind, for tests to count: "peer access A B", "context N" and, of
/// cuDNN, "search".
void note(std::string call);
/// What was noted since the last time; contexts are then noted once more. Any thread.
std::vector<std::string> take_notes();

/// The libraries' ReLU.
float relu(float x);

/// What kernels say that they were compiled for: RINGLET_STAND_IN_PTX, or 90. 0: for other GPUs.
int ptx_version();

}  // namespace ringlet::stand_in
