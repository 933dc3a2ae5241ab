#include "tests/cuda_stand_in/gpu_memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

namespace ringlet::stand_in {

namespace {

// A sanitizer watches the heap, and has places of its own in the address space.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // of g++
constexpr bool kGuards = false;
#else
constexpr bool kGuards = true;
#endif

// To open and to close many small pages takes a hundred times as long.
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kMostBytes = std::size_t{64} << 30;  // of address space
constexpr std::size_t kMostGpus = 10;

/// The memory of a GPU, in one stretch.
struct Arena {
  std::atomic<std::byte*> begin = nullptr;
  std::size_t used = 0;                     // from the begin on, in whole pages
  std::map<std::size_t, std::size_t> free;  // bytes by offset, below `used`
  int holders = 0;                          // for whom it is open
};
std::array<Arena, kMostGpus> arenas;
std::mutex arenas_mutex;
thread_local bool works = false;  // in work of a GPU
struct sigaction other_faults;

void say(std::string_view text) { (void)!write(STDERR_FILENO, text.data(), text.size()); }

/// Calls only what a handler of signals may.
void tell_of_fault(int, siginfo_t* fault, void*) {
  const auto* address = static_cast<const std::byte*>(fault->si_addr);
  for (std::size_t gpu = 0; gpu < kMostGpus; ++gpu) {
    const std::byte* begin = arenas[gpu].begin;
    if (begin == nullptr || address < begin || address >= begin + kMostBytes) continue;
    const char digit = static_cast<char>('0' + gpu);
    say(works ? "stand-in: work touches memory that its GPU does not reach: of GPU "
              : "stand-in: the host touches memory of GPU ");
    say({&digit, 1});
    say("\n");
  }
  sigaction(SIGSEGV, &other_faults, nullptr);  // for the same fault, which comes again
}

void listen_for_faults() {
  struct sigaction handler {};
  handler.sa_sigaction = tell_of_fault;
  handler.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &handler, &other_faults);
}

void reserve(Arena& arena) {
  void* const found = mmap(nullptr, kMostBytes + kHugePage, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) return;
  const std::size_t ahead = reinterpret_cast<std::uintptr_t>(found) % kHugePage;
  arena.begin = static_cast<std::byte*>(found) + (kHugePage - ahead);
  madvise(arena.begin, kMostBytes, MADV_HUGEPAGE);
  static std::once_flag once;
  std::call_once(once, listen_for_faults);
}

void give_back(Arena& arena, std::size_t offset, std::size_t bytes) {
  const auto block = arena.free.emplace(offset, bytes).first;
  const auto next = std::next(block);
  if (next != arena.free.end() && offset + bytes == next->first) {
    block->second += next->second;
    arena.free.erase(next);
  }
  if (block == arena.free.begin()) return;
  const auto last = std::prev(block);
  if (last->first + last->second != offset) return;
  last->second += block->second;
  arena.free.erase(block);
}

/// False where the address space ends.
bool grow(Arena& arena, std::size_t bytes) {
  const std::size_t more = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  if (arena.begin == nullptr) reserve(arena);
  if (arena.begin == nullptr || more > kMostBytes - arena.used) return false;
  if (arena.holders > 0) mprotect(arena.begin + arena.used, more, PROT_READ | PROT_WRITE);
  give_back(arena, arena.used, more);
  arena.used += more;
  return true;
}

/// Null where no free block is as large.
std::byte* take(Arena& arena, std::size_t bytes) {
  const auto block = std::find_if(arena.free.begin(), arena.free.end(),
                                  [bytes](const auto& free) { return free.second >= bytes; });
  if (block == arena.free.end()) return nullptr;
  const auto [offset, found] = *block;
  arena.free.erase(block);
  if (found > bytes) arena.free.emplace(offset + bytes, found - bytes);
  return arena.begin + offset;
}

}  // namespace

void* allocate_on(int gpu, std::size_t bytes) {
  void* address = nullptr;
  if (kGuards) {
    const std::lock_guard lock(arenas_mutex);
    Arena& arena = arenas.at(static_cast<std::size_t>(gpu));
    address = take(arena, bytes);
    if (address == nullptr && grow(arena, bytes)) address = take(arena, bytes);
  } else {
    address = std::aligned_alloc(256, bytes);
  }
  const OpenMemory open({gpu});
  if (address != nullptr) std::memset(address, 0xFF, bytes);
  return address;
}

void free_on(int gpu, void* address, std::size_t bytes) {
  {
    const OpenMemory open({gpu});
    std::memset(address, 0xFF, bytes);  // who uses it all the same has no use of it
  }
  if (!kGuards) return std::free(address);
  const std::lock_guard lock(arenas_mutex);
  Arena& arena = arenas.at(static_cast<std::size_t>(gpu));
  const auto offset = static_cast<std::byte*>(address) - arena.begin;
  give_back(arena, static_cast<std::size_t>(offset), bytes);
}

OpenMemory::OpenMemory(std::set<int> gpus) : gpus_(std::move(gpus)), before_(works) {
  works = true;
  if (!kGuards) return;  // nor would a sanitizer see beyond the lock what is not in order
  const std::lock_guard lock(arenas_mutex);
  for (const int gpu : gpus_) {
    Arena& arena = arenas.at(static_cast<std::size_t>(gpu));
    if (arena.holders++ == 0 && arena.used > 0) {
      mprotect(arena.begin, arena.used, PROT_READ | PROT_WRITE);
    }
  }
}

OpenMemory::~OpenMemory() {
  works = before_;
  if (!kGuards) return;
  const std::lock_guard lock(arenas_mutex);
  for (const int gpu : gpus_) {
    Arena& arena = arenas.at(static_cast<std::size_t>(gpu));
    if (--arena.holders == 0 && arena.used > 0) mprotect(arena.begin, arena.used, PROT_NONE);
  }
}

}  // namespace ringlet::stand_in
