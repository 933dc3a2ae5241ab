// ShmHeap: memory of this process that the other processes of a run read and write in place.
// ShmReach: the memory that ranks show, as this process reaches it.
//
// Each allocation is a memory of its own (sealed_memory.h). A rank that shows data for the first
// time hands their memory to all processes (processes/memory_mesh.h), and each maps it once. In
// which memory its data lie, and where, stands in a ShmRange.
//
// A mapping outlives what its owner does. So a process that frees its memory, or dies, takes
// nothing from the others: what they still write after an error goes to memory that nobody else
// uses any more. The owner says which of a rank's memories the others let go of for a new one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "base/allocator.h"
#include "comm/processes/memory_mesh.h"
#include "comm/transport/sealed_memory.h"

namespace ringlet::comm {

/// A range of memory, as other processes can find it.
struct ShmRange {
  std::uint64_t memory = 0;  ///< its number in the owner's process; 0: nothing that others reach
  std::int64_t begin = 0;    ///< of the range in it, in bytes
  std::int64_t bytes = 0;    ///< of the range

  bool in_reach() const { return memory != 0; }
  bool operator==(const ShmRange&) const = default;
};

/// The memory of one process, for all its ranks. Any thread.
class ShmHeap final : public Allocator {
 public:
  /// Zeros, at the beginning of a page. Pages that nobody touches take no memory.
  void* allocate(std::int64_t bytes) override;
  void deallocate(void* address, std::int64_t bytes) noexcept override;

  /// Where [address, address + bytes) is, if it lies in one allocation.
  ShmRange find(const void* address, std::int64_t bytes) const;
  /// Changes whenever what find() says may change.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  /// Hands `note.memory`, whose length it adds, to `process`. Throws CommError.
  void hand_over(const MemoryMesh& mesh, int process, MemoryNote note) const;

 private:
  struct Numbered {
    std::uint64_t number;
    SealedMemory memory;
  };

  mutable std::mutex mutex_;
  std::map<const std::byte*, Numbered> memories_;  // by address
  std::uint64_t made_ = 0;
  std::atomic<std::uint64_t> version_{1};
};

/// What one rank has shown the others, and they have mapped. One thread.
class ShmShown {
 public:
  ShmShown(const ShmHeap& heap, const MemoryMesh& mesh, int rank, int replicas)
      : heap_(heap), mesh_(mesh), rank_(rank), replicas_(replicas) {}

  /// Hands the memory of `range` to all processes that do not have it. To be called before the
  /// range is shown. Throws CommError.
  void hand_over(const ShmRange& range);

  static constexpr std::size_t kKept = 8;  ///< memories of a rank that the others keep

 private:
  const ShmHeap& heap_;
  const MemoryMesh& mesh_;
  int rank_;
  int replicas_;
  std::vector<std::uint64_t> handed_;  // the oldest first
};

/// Maps what ranks show into this process's addresses, for all its ranks. Any thread.
class ShmReach {
 public:
  ShmReach(const MemoryMesh& mesh, int ranks)
      : mesh_(mesh),
        replicas_(ranks / mesh.processes()),
        mapped_(static_cast<std::size_t>(ranks)) {}

  /// Address of a range that `rank` shows. It stays valid until that rank has shown
  /// ShmShown::kKept other memories. Throws CommError.
  void* at(int rank, const ShmRange& range);

 private:
  struct Mapping {
    std::uint64_t number;
    SealedMemory memory;
  };

  void take_next(int rank);

  const MemoryMesh& mesh_;
  int replicas_;  // of each process
  std::mutex mutex_;
  std::vector<std::vector<Mapping>> mapped_;  // by rank
};

}  // namespace ringlet::comm
