// ShmPeerAccess: one rank's PeerAccess between processes, through the windows of a ShmMemory.
#pragma once

#include <cstdint>

#include "comm/peer_ranges.h"
#include "comm/rank_wait.h"
#include "comm/shm_memory.h"

namespace ringlet::comm {

class ProcessGroup;

class ShmPeerAccess final : public PeerRanges {
 public:
  /// For the rank of `transport`. All of them outlive this.
  ShmPeerAccess(const ShmMemory& memory, Transport& transport, RankWait<ProcessGroup>& waiting);

  std::int64_t window_bytes() const override { return ShmMemory::kWindowBytes; }
  View window() override;

  void open(Stream& stream, const View& mine) override;
  void meet(Stream& stream) override;
  void close(Stream& stream) override { meet(stream); }
  void leave(Stream&) override {}
  void abandon(Stream& stream, const char* reason) noexcept override;
  void settle() noexcept override {}  // what is shown is nobody's to give back

 private:
  ShmBoard::Shown& shown_by(int rank) { return memory_.board(rank).shown[session_ % 2]; }
  void meet_and_show(std::int64_t bytes);

  const ShmMemory& memory_;
  RankWait<ProcessGroup>& waiting_;
  const MemoryOperations kernels_{};
  std::uint64_t session_ = 0;  // the latest one that this rank came to
  int window_ = 1;             // the one that window() gave last
};

}  // namespace ringlet::comm
