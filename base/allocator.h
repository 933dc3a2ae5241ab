// Allocator: where memory comes from. Every Device is one; the owners of memory (memory.h) take
// any.
#pragma once

#include <cstdint>

namespace ringlet {

class Allocator {
 public:
  virtual ~Allocator() = default;

  /// Memory aligned to at least 256 bytes, contents unspecified; throws OutOfMemoryError.
  /// 0 bytes give a valid address as well.
  virtual void* allocate(std::int64_t bytes) = 0;
  /// Frees what allocate(bytes) returned.
  virtual void deallocate(void* address, std::int64_t bytes) noexcept = 0;
};

/// Ordinary memory of the process.
Allocator& host_allocator();

}  // namespace ringlet
