// Allocator: where memory comes from. A Device is one; what owns memory (memory.h) takes any.
#pragma once

#include <cstdint>

namespace ringlet {

class Allocator {
 public:
  virtual ~Allocator() = default;

  /// Memory aligned to at least 256 bytes, contents unspecified; throws OutOfMemoryError.
  /// 0 bytes give a valid address as well.
  virtual void* allocate(std::int64_t bytes) = 0;
  /// What allocate() gave for so many bytes.
  virtual void deallocate(void* address, std::int64_t bytes) noexcept = 0;
};

}  // namespace ringlet
