#include "base/allocator.h"

#include <cstddef>
#include <new>

#include "base/error.h"

namespace ringlet {

namespace {

class HostAllocator final : public Allocator {
 public:
  void* allocate(std::int64_t bytes) override {
    void* memory = ::operator new(static_cast<std::size_t>(bytes), kAlignment, std::nothrow);
    if (memory == nullptr) {
      throw OutOfMemoryError("the machine's memory, or the limit on it (ulimit -v), is used up");
    }
    return memory;
  }
  void deallocate(void* address, std::int64_t /*bytes*/) noexcept override {
    ::operator delete(address, kAlignment);
  }

 private:
  static constexpr std::align_val_t kAlignment{256};
};

}  // namespace

Allocator& host_allocator() {
  static HostAllocator allocator;
  return allocator;
}

}  // namespace ringlet
