// StaggeredMemory: memory of a device that begins elsewhere in a page for each rank of a process.
//
// Threads that allocate the same get the same addresses but for the highest bits: their heaps begin
// at multiples of 64 MiB. A strategy reads an element of all ranks in one step, and all these lines
// then fall into the same set of the first cache. AMD's processors (Zen) find a line there by a
// hash of the address' bits 12 to 27. Of two lines of one set with one hash each throws out the
// other, and ranks whose heaps lie 256 MiB apart have just that: two-shot of 64 KiB took 7.2 us
// there instead of 2.0 (Zen 4; docs/all-reduce-measured.md). With different places in a page the
// lines that are read together are never in one set, however far apart the heaps are.
#pragma once

#include <cstdint>

#include "base/allocator.h"

namespace ringlet::comm {

class StaggeredMemory final : public Allocator {
 public:
  /// For rank `place` of `places` that share an address space. `from` outlives this.
  StaggeredMemory(Allocator& from, int place, int places);

  /// At place / places of a page, to 256 bytes.
  void* allocate(std::int64_t bytes) override;
  void deallocate(void* address, std::int64_t bytes) noexcept override;

  const Allocator& from() const { return from_; }

 private:
  Allocator& from_;
  std::uintptr_t begin_;  // in a page
};

}  // namespace ringlet::comm
