#include "base/memory_reserve.h"

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <new>

namespace ringlet {

namespace {

/// The C library asks the system for 1 MiB at a time where its heap cannot grow. Two threads may
/// need as much, and their messages and stacks are small.
constexpr std::size_t kReserve = std::size_t{4} << 20;

std::atomic<void*> reserve{nullptr};

void give_reserve_back() {
  if (void* const held = reserve.exchange(nullptr)) munmap(held, kReserve);
  throw std::bad_alloc();
}

}  // namespace

void set_memory_aside() {
  void* const held =
      mmap(nullptr, kReserve, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (held != MAP_FAILED) reserve = held;
  std::set_new_handler(give_reserve_back);
  try {
    std::once_flag once;
    std::call_once(once, [] { throw 0; });
  } catch (int) {  // the C library has loaded its unwinder
  }
}

}  // namespace ringlet
