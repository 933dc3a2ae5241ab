#include "learn/check/hooks.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

extern "C" void __libc_free(void* memory);  // NOLINT: the C library calls them so
extern "C" void* __libc_realloc(void* memory, std::size_t bytes);  // NOLINT

/// `delete` calls it as well; and all that was taken aligned ends here.
extern "C" void free(void* memory) noexcept {
  if (!ringlet::learn::g_keeps_freed_memory) __libc_free(memory);
}

extern "C" void* realloc(void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr || !ringlet::learn::g_keeps_freed_memory) {
    return __libc_realloc(memory, bytes);
  }
  void* const other = bytes == 0 ? nullptr : std::malloc(bytes);
  if (other != nullptr) std::memcpy(other, memory, std::min(bytes, malloc_usable_size(memory)));
  return other;
}

extern "C" int munmap(void* memory, std::size_t bytes) noexcept {
  if (ringlet::learn::g_keeps_freed_memory) return 0;
  return static_cast<int>(syscall(SYS_munmap, memory, bytes));
}

namespace {

struct Start {
  void* (*function)(void*);
  void* argument;
};

/// Also where a thread ends by pthread_exit().
struct Counted {
  ~Counted() { --ringlet::learn::g_live_threads; }
};

void* run_counted(void* given) {
  const Counted counted;
  const std::unique_ptr<Start> start(static_cast<Start*>(given));
  return start->function(start->argument);
}

}  // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*function)(void*), void* argument) {
  using Create = decltype(pthread_create);
  static auto* const create = reinterpret_cast<Create*>(dlsym(RTLD_NEXT, "pthread_create"));
  auto start = std::make_unique<Start>(Start{function, argument});
  ++ringlet::learn::g_live_threads;
  const int error = create(thread, attributes, run_counted, start.get());
  if (error == 0) {
    start.release();  // NOLINT: the thread has it
  } else {
    --ringlet::learn::g_live_threads;
  }
  return error;
}
