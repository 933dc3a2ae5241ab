// The run time's memory and copies.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "tests/cuda_stand_in/runtime.h"

namespace ringlet::stand_in {

namespace {

constexpr int kHost = -1;

struct Allocation {
  int device = 0;  // kHost: of the host, pinned
  std::size_t bytes = 0;
};
std::map<std::uintptr_t, Allocation> allocated;  // by address

std::uintptr_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

std::size_t free_memory(int device) {
  std::size_t free = memory_of_a_gpu();
  for (const auto& [address, allocation] : allocated) {
    if (allocation.device == device) free -= allocation.bytes;
  }
  return free;
}

cudaError_t allocate(void** address, std::size_t bytes, int device) {
  constexpr std::size_t kAlignment = 256;  // CUDA's
  const std::size_t whole =
      std::max((bytes + kAlignment - 1) / kAlignment * kAlignment, kAlignment);
  if (device != kHost && whole > free_memory(device)) return failed(cudaErrorMemoryAllocation);
  *address = std::aligned_alloc(kAlignment, whole);
  if (*address == nullptr) return failed(cudaErrorMemoryAllocation);
  std::memset(*address, 0xFF, whole);  // NaN in each type of float
  allocated[number_of(*address)] = {device, bytes};
  return cudaSuccess;
}

cudaError_t release(Lock& lock, void* address, const char* call) {
  if (address == nullptr) return cudaSuccess;
  if (forbidden(call)) return last_error;
  drain_device(lock);
  if (allocated.erase(number_of(address)) == 0) return failed(cudaErrorInvalidValue);
  std::free(address);
  return cudaSuccess;
}

/// Whether CUDA has to copy it through memory of its own.
bool is_pageable(const void* address) {
  const auto [begin, end] = memory_at(number_of(address));
  return number_of(address) >= end;
}

}  // namespace

std::size_t memory_of_a_gpu() {
  const char* said = std::getenv("RINGLET_STAND_IN_MEMORY");
  return static_cast<std::size_t>(said == nullptr ? 8192 : std::atoll(said)) << 20;
}

std::pair<std::uintptr_t, std::uintptr_t> memory_at(std::uintptr_t address) {
  const Lock lock(mutex);
  const auto next = allocated.upper_bound(address);
  if (next == allocated.begin()) return {0, 0};
  const auto& [begin, allocation] = *std::prev(next);
  return {begin, begin + allocation.bytes};
}

}  // namespace ringlet::stand_in

using namespace ringlet::stand_in;  // NOLINT(google-build-using-namespace): its own insides

extern "C" {

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const Lock lock(mutex);
  *total = memory_of_a_gpu();
  *free = free_memory(current_device);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  const Lock lock(mutex);
  return forbidden("cudaMalloc") ? last_error : allocate(address, bytes, current_device);
}

cudaError_t cudaFree(void* address) {
  Lock lock(mutex);
  return release(lock, address, "cudaFree");
}

cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned) {
  const Lock lock(mutex);
  return forbidden("cudaHostAlloc") ? last_error : allocate(address, bytes, kHost);
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
                                 [to, from, bytes] { std::memcpy(to, from, bytes); });
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
  return put(stream, "memset", [to, value, bytes] { std::memset(to, value, bytes); });
}

}  // extern "C"
