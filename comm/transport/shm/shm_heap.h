// ShmHeap: memory of this process that the other processes of a run read and write in place.
// ShmReach: the memory of the other processes, as this one reaches it.
//
// Each allocation is a memory of its own, without a name in any file system (memfd_create). A rank
// shows in which of them its data lie, and where (ShmPlace). Another process opens that as
// /proc/PID/fd/N, which the kernel grants to processes of the same user, and maps it once.
//
// It keeps the mapping. So a process that frees its memory, or dies, takes nothing from the others:
// what they still write after an error goes to memory that nobody else uses any more.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "kernels/allocator.h"

namespace ringlet::comm {

/// A range of memory, as other processes can find it.
struct ShmPlace {
  int descriptor = -1;       ///< in the owner's process; -1: it is nothing that others reach
  std::uint64_t memory = 0;  ///< its number, unique on this machine since it started
  std::int64_t bytes = 0;    ///< of the whole memory
  std::int64_t begin = 0;    ///< of the range in it, in bytes

  bool in_reach() const { return descriptor >= 0; }
};

/// The memory of one process, for all its ranks. Any thread.
class ShmHeap final : public Allocator {
 public:
  ~ShmHeap() override;

  /// Zeros, at the beginning of a page. Pages that nobody touches take no memory.
  void* allocate(std::int64_t bytes) override;
  void deallocate(void* address, std::int64_t bytes) noexcept override;

  /// Where [address, address + bytes) is, if it lies in one allocation.
  ShmPlace find(const void* address, std::int64_t bytes) const;
  /// Changes whenever what find() says may change.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }

 private:
  struct Memory {
    int descriptor;
    std::uint64_t id;
    std::int64_t bytes;
  };

  mutable std::mutex mutex_;
  std::map<const std::byte*, Memory> memories_;  // by address
  std::atomic<std::uint64_t> version_{1};
};

/// Maps other processes' memory into this process's addresses. One thread at a time.
class ShmReach {
 public:
  explicit ShmReach(int ranks) : mapped_(static_cast<std::size_t>(ranks)) {}
  ~ShmReach();
  ShmReach(const ShmReach&) = delete;
  ShmReach& operator=(const ShmReach&) = delete;

  /// Address of `place`, which belongs to `rank` in process `pid`. It stays valid until kKept other
  /// memories of that rank have been asked for. Throws CommError.
  void* at(int rank, int pid, const ShmPlace& place);

  static constexpr std::size_t kKept = 8;

 private:
  struct Mapping {
    std::uint64_t memory;
    void* address;
    std::int64_t bytes;
  };

  std::vector<std::vector<Mapping>> mapped_;  // by rank, the oldest first
};

}  // namespace ringlet::comm
