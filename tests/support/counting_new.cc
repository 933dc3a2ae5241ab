// All forms are replaced: a sanitizer's own array and nothrow forms would not call ours. They are
// not inlined: a compiler that sees malloc behind new may leave both out.
#include "tests/support/counting_new.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::int64_t> calls{0};
thread_local std::int64_t calls_of_this_thread = 0;

constexpr std::size_t kOrdinary = alignof(std::max_align_t);
std::size_t of(std::align_val_t alignment) { return static_cast<std::size_t>(alignment); }

void* counted(std::size_t bytes, std::size_t alignment) {
  calls.fetch_add(1, std::memory_order_relaxed);
  ++calls_of_this_thread;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
}

void* counted_or_throw(std::size_t bytes, std::size_t alignment) {
  if (void* memory = counted(bytes, alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace

std::int64_t ringlet::test::operator_new_calls() { return calls.load(std::memory_order_relaxed); }
std::int64_t ringlet::test::operator_new_calls_of_this_thread() { return calls_of_this_thread; }

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  return counted_or_throw(bytes, kOrdinary);
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t at) {
  return counted_or_throw(bytes, of(at));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return counted(bytes, kOrdinary);
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t at,
                                     const std::nothrow_t&) noexcept {
  return counted(bytes, of(at));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void* operator new[](std::size_t bytes) {
  return counted_or_throw(bytes, kOrdinary);
}
[[gnu::noinline]] void* operator new[](std::size_t bytes, std::align_val_t at) {
  return counted_or_throw(bytes, of(at));
}
[[gnu::noinline]] void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return counted(bytes, kOrdinary);
}
[[gnu::noinline]] void* operator new[](std::size_t bytes, std::align_val_t at,
                                       const std::nothrow_t&) noexcept {
  return counted(bytes, of(at));
}
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
