// ShmHeap: memory of this process that the other processes of a run reach in place, and ShmReach,
// by which they do.
//
// Each allocation is a memory of its own without a name in any file system (memfd_create). A rank
// shows where in which of them its data lie (ShmPlace); another process opens that as
// /proc/PID/fd/N, which the kernel grants to processes of the same user, and maps it once. It keeps
// the mapping: a process that frees its memory, or dies, takes nothing from under others' hands,
// and what they still write after an error goes to memory that nobody else uses any more.
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
  std::uint64_t memory = 0;  ///< which one that is, among all of this machine since it started
  std::int64_t bytes = 0;    ///< of the whole memory
  std::int64_t begin = 0;    ///< of the range in it, in bytes

  bool in_reach() const { return descriptor >= 0; }
};

/// Of one process, for all its ranks. Any thread.
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

/// Other processes' places in the addresses of this one. One thread at a time.
class ShmReach {
 public:
  explicit ShmReach(int ranks) : mapped_(static_cast<std::size_t>(ranks)) {}
  ~ShmReach();
  ShmReach(const ShmReach&) = delete;
  ShmReach& operator=(const ShmReach&) = delete;

  /// The place of `rank`, whose process is `pid`. The address holds until this has been asked for
  /// kKept other memories of that rank. Throws CommError.
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
