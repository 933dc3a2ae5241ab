// What launches the kernels of kernels/grid/ on a GPU.
//
// A small grid is launched early ("programmatic dependent launch"): while the kernel before it in
// the stream runs, its blocks come to await_inputs() and wait there until that kernel has ended and
// all that it wrote can be read. So the time that a launch takes is hidden. Every kernel here calls
// await_inputs() before it reads or writes anything, and so never ends before the one before it;
// what is launched behind it, of a library's say, may rely on that.
// CudaStream::launches_early() says which; RINGLET_EARLY_LAUNCHES=off: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <nv/target>

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/grid/grid.h"
#include "kernels/grid/pack.h"

namespace ringlet::impl {

inline constexpr int kBlockThreads = 256;
/// Eight blocks fill a multiprocessor, five where a kernel needs many registers: several times as
/// many, so that none of them is idle for long at the end.
inline constexpr std::int64_t kBlocksPerMultiprocessor = 32;

__device__ inline std::int64_t grid_first() {
  return std::int64_t{blockIdx.x} * kBlockThreads + threadIdx.x;
}
__device__ inline std::int64_t grid_stride() { return std::int64_t{gridDim.x} * kBlockThreads; }

/// To be called by every thread of every kernel, first of all.
__device__ inline void await_inputs() {
  // The first call lets the next kernel's blocks come, and wait. The second returns at once where
  // the launch was not early.
  NV_IF_TARGET(NV_PROVIDES_SM_90,
               (cudaTriggerProgrammaticLaunchCompletion(); cudaGridDependencySynchronize();))
}

template <int>
__global__ void probe_kernel() {
  await_inputs();
}

/// A GPU of compute capability 9.0 runs PTX for 8.0 as well, where await_inputs() does nothing.
inline KernelCode code_of_kernels() {
  cudaFuncAttributes attributes{};
  const cudaError_t missing = cudaFuncGetAttributes(&attributes, probe_kernel<0>);
  cudaGetLastError();  // asking is no failure of what comes later
  constexpr int kWaits = 90;
  return {missing, missing == cudaSuccess && attributes.ptxVersion >= kWaits};
}

// The loops below mostly turn once or twice: unrolled, they would begin with a division for the
// number of turns.

template <class F>
__global__ void __launch_bounds__(kBlockThreads) for_each_kernel(std::int64_t n, F f) {
  await_inputs();
#pragma unroll 1
  for (std::int64_t i = grid_first(); i < n; i += grid_stride()) f(i);
}

template <class F>
__global__ void __launch_bounds__(kBlockThreads) for_each_pack_kernel(std::int64_t n, F f) {
  await_inputs();
  const std::int64_t packs = n / F::kPack;
#pragma unroll 1
  for (std::int64_t i = grid_first(); i < packs; i += grid_stride()) {
    f.template apply<F::kPack>(i);
  }
#pragma unroll 1
  for (std::int64_t i = F::kPack * packs + grid_first(); i < n; i += grid_stride()) {
    f.template apply<1>(i);
  }
}

/// The same one element at a time, for memory that is not aligned as packs need it.
template <class F>
__global__ void __launch_bounds__(kBlockThreads) for_each_single_kernel(std::int64_t n, F f) {
  await_inputs();
#pragma unroll 1
  for (std::int64_t i = grid_first(); i < n; i += grid_stride()) f.template apply<1>(i);
}

template <class Program>
__device__ void run_phases(const Program& program, const grid::ThreadIndex& index,
                           typename Program::Shared& shared) {
#pragma unroll
  for (int k = 0; k < Program::kPhases; ++k) {
    if (k > 0) __syncthreads();
    program.phase(k, index, shared);
  }
}

template <class Program>
__global__ void __launch_bounds__(Program::kThreads) blocks_kernel(Program program) {
  await_inputs();
  __shared__ typename Program::Shared shared;
  run_phases(program, {blockIdx.x, gridDim.x, static_cast<int>(threadIdx.x)}, shared);
}

/// State stays in registers: all its indices are known when loops are unrolled.
template <class Program>
__global__ void __launch_bounds__(Program::kThreads, Program::kResident)
    turns_kernel(Program program) {
  await_inputs();
  __shared__ typename Program::Shared shared;
  typename Program::State state;
  const grid::ThreadIndex index{blockIdx.x, gridDim.x, static_cast<int>(threadIdx.x)};
  program.begin(index, shared, state);
  __syncthreads();
  program.start(index, shared, state);
  const std::int32_t turns = program.turns(index.block);
#pragma unroll 1
  for (std::int32_t turn = 0; turn < turns; ++turn) {
    program.fill(index, shared, state);
    __syncthreads();
    program.work(turn, index, shared, state);
    __syncthreads();
  }
  program.end(index, state);
}

/// What was asked for so far is a group of copies; and waiting for all but the last kLeft groups.
__device__ inline void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kLeft>
__device__ void await_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

/// A turn's barrier also tells that all threads are through with the turn before, whose stage is
/// then filled anew.
template <class Program>
__global__ void __launch_bounds__(Program::kThreads, Program::kResident)
    pipeline_kernel(Program program) {
  await_inputs();
  extern __shared__ __align__(128) unsigned char pipeline_stages[];
  auto* const stages = reinterpret_cast<typename Program::Stage*>(pipeline_stages);
  constexpr int kAhead = Program::kStages - 1;
  typename Program::State state;
  const grid::ThreadIndex index{blockIdx.x, gridDim.x, static_cast<int>(threadIdx.x)};
  program.begin(index, state);
  const std::int32_t turns = program.turns(index.block);
#pragma unroll
  for (int turn = 0; turn < kAhead; ++turn) {
    if (turn < turns) program.fetch(turn, index, stages[turn], state);
    end_copies();
  }
  int stage = 0, next = kAhead;
#pragma unroll 1
  for (std::int32_t turn = 0; turn < turns; ++turn) {
    await_copies<kAhead - 1>();
    __syncthreads();
    if (turn + kAhead < turns) program.fetch(turn + kAhead, index, stages[next], state);
    end_copies();
    program.work(index, stages[stage], state);
    stage = stage == kAhead ? 0 : stage + 1;
    next = next == kAhead ? 0 : next + 1;
  }
  program.end(index, state);
}

/// Whether the calling block is the last of its team to come here. What the others wrote before
/// they came is then there to be read. Leaves the team's ticket at 0 for the next kernel.
__device__ inline bool last_of_team(unsigned* ticket, unsigned team_size) {
  __shared__ bool last;
  __syncthreads();  // all threads of this block have written
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(ticket, 1) == team_size - 1;
    if (last) *ticket = 0;
    __threadfence();
  }
  __syncthreads();
  return last;
}

/// The last block adds up in an order of its own, so no result depends on which block it is.
template <class Program>
__global__ void __launch_bounds__(Program::kThreads, Program::kResident)
    teams_kernel(unsigned* tickets, Program program) {
  await_inputs();
  __shared__ typename Program::Shared shared;
  const grid::ThreadIndex index{blockIdx.x, gridDim.x, static_cast<int>(threadIdx.x)};
  run_phases(program, index, shared);
  const auto team = program.team_size.quotient(static_cast<std::int32_t>(blockIdx.x));
  if (!last_of_team(tickets + team, static_cast<unsigned>(program.team_size.divisor()))) return;
#pragma unroll
  for (int k = 0; k < Program::kTeamPhases; ++k) {
    if (k > 0) __syncthreads();
    program.team_phase(k, index, shared);
  }
}

class CudaGrid {
 public:
  explicit CudaGrid(CudaStream& stream) : stream_(stream) {}

  struct Adder {
    __device__ void operator()(std::int32_t* address, std::int32_t value) const {
      atomicAdd(address, value);
    }
  };

  template <class F>
  void for_each(const char* name, std::int64_t n, const F& f) {
    if (n == 0) return;
    launch(name, for_each_kernel<F>, blocks_for(n), kBlockThreads, 0, n, f);
  }

  template <class F>
  void for_each_pack(const char* name, std::int64_t n, const F& f) {
    if (n == 0) return;
    if (f.takes_packs()) {
      const std::int64_t threads = (n + F::kPack - 1) / F::kPack;
      launch(name, for_each_pack_kernel<F>, blocks_for(threads), kBlockThreads, 0, n, f);
    } else {
      launch(name, for_each_single_kernel<F>, blocks_for(n), kBlockThreads, 0, n, f);
    }
  }

  template <class Program>
  void run_blocks(const char* name, std::int64_t blocks, const Program& program) {
    if (blocks == 0) return;
    launch(name, blocks_kernel<Program>, static_cast<unsigned>(blocks), Program::kThreads, 0,
           program);
  }

  template <class Program>
  void run_turns(const char* name, std::int64_t blocks, const Program& program) {
    if (blocks == 0) return;
    launch(name, turns_kernel<Program>, static_cast<unsigned>(blocks), Program::kThreads, 0,
           program);
  }

  template <class Program>
  void run_pipeline(const char* name, std::int64_t blocks, const Program& program) {
    if (blocks == 0) return;
    constexpr std::size_t kBytes = Program::kStages * sizeof(typename Program::Stage);
    stream_.handle();  // the attribute is of the current GPU
    check_cuda(cudaFuncSetAttribute(pipeline_kernel<Program>,
                                    cudaFuncAttributeMaxDynamicSharedMemorySize, int{kBytes}),
               name);
    launch(name, pipeline_kernel<Program>, static_cast<unsigned>(blocks), Program::kThreads, kBytes,
           program);
  }

  template <class Program>
  void run_teams(const char* name, std::int64_t teams, const Program& program) {
    const auto blocks = static_cast<unsigned>(teams * program.team_size.divisor());
    unsigned* tickets = stream_.tickets(teams);
    launch(name, teams_kernel<Program>, blocks, Program::kThreads, 0, tickets, program);
  }

  std::int64_t blocks_to_fill() const {
    return kBlocksPerMultiprocessor * stream_.multiprocessors();
  }

  template <class T>
  T* workspace_of(std::int64_t count) {
    return stream_.workspace_of<T>(count);
  }

 private:
  template <class... Arguments>
  void launch(const char* name, void (*kernel)(Arguments...), unsigned blocks, int threads,
              std::size_t shared_bytes, const Arguments&... arguments) {
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream_.handle();
    config.attrs = &early;
    config.numAttrs = stream_.launches_early(blocks) ? 1 : 0;
    check_cuda(cudaLaunchKernelEx(&config, kernel, arguments...), name);
  }

  unsigned blocks_for(std::int64_t threads) const {
    const std::int64_t needed = (threads + kBlockThreads - 1) / kBlockThreads;
    return static_cast<unsigned>(std::min(needed, blocks_to_fill()));
  }

  CudaStream& stream_;
};

}  // namespace ringlet::impl
