// The run time's memory and copies.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "tests/cuda_stand_in/gpu_memory.h"
#include "tests/cuda_stand_in/runtime.h"

namespace ringlet::stand_in {

namespace {

struct Allocation {
  int gpu = kNoGpu;  // kNoGpu: of the host, pinned
  std::size_t bytes = 0;
};
std::mutex allocated_mutex;                      // whoever holds it calls nothing
std::map<std::uintptr_t, Allocation> allocated;  // by address

std::uintptr_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

std::size_t whole(std::size_t bytes) {
  constexpr std::size_t kAlignment = 256;  // CUDA's
  return std::max((bytes + kAlignment - 1) / kAlignment * kAlignment, kAlignment);
}

std::size_t free_memory(int gpu) {
  const std::lock_guard lock(allocated_mutex);
  std::size_t free = memory_of_a_gpu();
  for (const auto& [address, allocation] : allocated) {
    if (allocation.gpu == gpu) free -= std::min(free, whole(allocation.bytes));
  }
  return free;
}

void* allocate_on_host(std::size_t bytes) {
  void* address = std::aligned_alloc(whole(1), bytes);
  if (address != nullptr) std::memset(address, 0xFF, bytes);
  return address;
}

cudaError_t allocate(void** address, std::size_t bytes, int gpu) {
  if (gpu != kNoGpu && whole(bytes) > free_memory(gpu)) return failed(cudaErrorMemoryAllocation);
  *address = gpu == kNoGpu ? allocate_on_host(whole(bytes)) : allocate_on(gpu, whole(bytes));
  if (*address == nullptr) return failed(cudaErrorMemoryAllocation);
  const std::lock_guard lock(allocated_mutex);
  allocated[number_of(*address)] = {gpu, bytes};
  return cudaSuccess;
}

bool (*is_awaited)(int gpu) = nullptr;

/// Fails where another GPU's kernel waits for this thread's work (stand_in.h).
bool held_back(const char* call) {
  if (is_awaited == nullptr || !is_awaited(current_device)) return false;
  refuse(
      cudaErrorLaunchTimeout,
      fmt::format("{} while the kernel of a collective waits on another GPU for GPU {}: CUDA may "
                  "hold back both for ever",
                  call, current_device));
  return true;
}

cudaError_t release(Lock& lock, void* address, const char* call) {
  if (address == nullptr) return cudaSuccess;
  if (forbidden(call) || held_back(call)) return last_error;
  drain_device(lock);
  return free_at_once(address);
}

/// Whether CUDA has to copy it through memory of its own.
bool is_pageable(const void* address) {
  const auto [begin, end] = memory_at(number_of(address));
  return number_of(address) >= end;
}

/// The work of a copy. It may be between GPUs that have no access to each other.
auto copy_of(void* to, const void* from, std::size_t bytes) {
  std::set<int> gpus{gpu_of(to, bytes), gpu_of(from, bytes)};
  gpus.erase(kNoGpu);
  return [to, from, bytes, gpus] {
    const OpenMemory open(gpus);
    std::memcpy(to, from, bytes);
  };
}

cudaError_t require_gpu_memory(const void* address, std::size_t bytes, const char* call) {
  if (gpu_of(address, bytes) != kNoGpu) return cudaSuccess;
  return refuse(cudaErrorInvalidValue,
                fmt::format("{}: {} bytes that are no memory of a GPU", call, bytes));
}

}  // namespace

std::size_t memory_of_a_gpu() {
  const char* said = std::getenv("RINGLET_STAND_IN_MEMORY");
  return static_cast<std::size_t>(said == nullptr ? 8192 : std::atoll(said)) << 20;
}

void tell_of_waiting(bool (*awaited)(int gpu)) {
  const Lock lock(mutex);
  is_awaited = awaited;
}

std::pair<std::uintptr_t, std::uintptr_t> memory_at(std::uintptr_t address) {
  const std::lock_guard lock(allocated_mutex);
  const auto next = allocated.upper_bound(address);
  if (next == allocated.begin()) return {0, 0};
  const auto& [begin, allocation] = *std::prev(next);
  return {begin, begin + allocation.bytes};
}

int gpu_of(const void* address, std::size_t bytes) {
  const std::uintptr_t number = number_of(address);
  const std::lock_guard lock(allocated_mutex);
  const auto next = allocated.upper_bound(number);
  if (next == allocated.begin()) return kNoGpu;
  const auto& [begin, allocation] = *std::prev(next);
  return number + bytes <= begin + allocation.bytes ? allocation.gpu : kNoGpu;
}

cudaError_t free_at_once(void* address) {
  Allocation found;
  {
    const std::lock_guard lock(allocated_mutex);
    const auto node = allocated.extract(number_of(address));
    if (node.empty()) return failed(cudaErrorInvalidValue);
    found = node.mapped();
  }
  if (found.gpu == kNoGpu) {
    std::free(address);
  } else {
    free_on(found.gpu, address, whole(found.bytes));
  }
  return cudaSuccess;
}

}  // namespace ringlet::stand_in

using namespace ringlet::stand_in;  // NOLINT(google-build-using-namespace): its own insides

extern "C" {

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  note_context();
  const Lock lock(mutex);
  if (is_broken()) return failed(cudaErrorIllegalAddress);
  *total = memory_of_a_gpu();
  *free = free_memory(current_device);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  const Lock lock(mutex);
  if (forbidden("cudaMalloc") || held_back("cudaMalloc")) return last_error;
  return allocate(address, bytes, current_device);
}

cudaError_t cudaFree(void* address) {
  Lock lock(mutex);
  return release(lock, address, "cudaFree");
}

cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned) {
  const Lock lock(mutex);
  if (forbidden("cudaHostAlloc") || held_back("cudaHostAlloc")) return last_error;
  return allocate(address, bytes, kNoGpu);
}

cudaError_t cudaFreeHost(void* address) {
  Lock lock(mutex);
  return release(lock, address, "cudaFreeHost");
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  Lock lock(mutex);
  if (check_stream(stream) != cudaSuccess) return last_error;
  const bool uploads = kind == cudaMemcpyHostToDevice, downloads = kind == cudaMemcpyDeviceToHost;
  if (!downloads && require_gpu_memory(to, bytes, "cudaMemcpyAsync") != cudaSuccess) {
    return last_error;
  }
  if (!uploads && require_gpu_memory(from, bytes, "cudaMemcpyAsync") != cudaSuccess) {
    return last_error;
  }
  const bool pageable = (uploads && is_pageable(from)) || (downloads && is_pageable(to));
  if (pageable && stream->capture != nullptr) {
    return break_capture(*stream->capture, cudaErrorStreamCaptureUnsupported,
                         "a copy of pageable memory");
  }
  if (pageable && uploads) {  // CUDA has a copy before it returns
    const auto* begin = static_cast<const std::byte*>(from);
    return put(stream, "copy", [to, kept = std::vector<std::byte>(begin, begin + bytes)] {
      std::memcpy(to, kept.data(), kept.size());
    });
  }
  const cudaError_t result = put(stream,
                                 uploads     ? "upload"
                                 : downloads ? "download"
                                             : "copy",
                                 copy_of(to, from, bytes));
  if (pageable) let_others_run(stream);
  if (pageable) await(lock, [stream] { return drain(*stream); });
  return result;
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                                cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  const Lock lock(mutex);
  if (check_stream(stream) != cudaSuccess) return last_error;
  if (require_gpu_memory(to, bytes, "cudaMemsetAsync") != cudaSuccess) return last_error;
  return put(stream, "memset", [to, value, bytes] { std::memset(to, value, bytes); });
}

}  // extern "C"
