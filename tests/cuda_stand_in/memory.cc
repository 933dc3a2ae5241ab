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

std::map<const void*, std::size_t> pinned;  // address -> bytes
std::map<void*, std::size_t> allocated;     // address -> bytes

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

}  // namespace

std::pair<std::uintptr_t, std::uintptr_t> memory_at(std::uintptr_t address) {
  const Lock lock(mutex);
  const auto next = allocated.upper_bound(reinterpret_cast<void*>(address));
  if (next == allocated.begin()) return {0, 0};
  const auto& [begin, bytes] = *std::prev(next);
  return {reinterpret_cast<std::uintptr_t>(begin), reinterpret_cast<std::uintptr_t>(begin) + bytes};
}

}  // namespace ringlet::stand_in

using namespace ringlet::stand_in;  // NOLINT(google-build-using-namespace): its own insides

extern "C" {

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

}  // extern "C"
