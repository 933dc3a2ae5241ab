// ShmPeerAccess: one rank's PeerAccess between processes: through the windows of a ShmMemory, and
// in place to what lies in each process's ShmHeap.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/transport/peer_ranges.h"
#include "comm/transport/rank_wait.h"
#include "comm/transport/shm/shm_heap.h"
#include "comm/transport/shm/shm_memory.h"

namespace ringlet::comm {

class JoinedGroup;

/// What the ranks of one process share with each other, and with those of other processes.
struct ShmShared {
  ShmMemory memory;
  const MemoryMesh& mesh;  ///< outlives this
  ShmReach reach;
  ShmHeap heap{};
};

class ShmPeerAccess final : public PeerRanges {
 public:
  /// For the rank of `transport`. All of them outlive this.
  ShmPeerAccess(ShmShared& shared, Transport& transport, RankWait<JoinedGroup>& waiting);

  std::int64_t window_bytes() const override { return ShmMemory::kWindowBytes; }
  bool can_show(const View& mine) override;
  View window() override;

  void open(Stream& stream, const View& mine) override;
  bool open_where_all_can(Stream& stream, const View& mine) override;
  void meet(Stream& stream) override;
  void close(Stream& stream) override { meet(stream); }
  void leave(Stream&) override {}
  void abandon(Stream& stream, const char* reason) noexcept override;
  void settle() noexcept override {}  // what others have mapped stays until they let go of it
  void share(Stream& stream, const void* data, std::int64_t bytes) override;

 private:
  ShmBoard::Shown& shown_by(int rank) { return memory_.board(rank).shown[session_ % 2]; }
  const ShmRange& range_of(const View& data);
  void* data_of(int rank);
  void set_ranges(const View& mine, bool in_reach);
  /// check_peer(peer) may throw.
  template <class Check>
  void meet_and_show(Stream& stream, std::int64_t bytes, const ShmRange& range, Check check_peer);
  template <class Check>
  void meet_others(Stream& stream, bool shares, Check check_peer);
  /// Where all ranks' ranges are in reach, or none's.
  void show_and_meet_alike(Stream& stream, std::int64_t bytes, const ShmRange& range);
  void check_range(int peer, bool in_reach);
  void check(int peer, std::int64_t bytes, bool shares);

  const ShmMemory& memory_;
  const ShmHeap& heap_;
  ShmReach& reach_;
  RankWait<JoinedGroup>& waiting_;
  ShmShown handed_;
  /// What each rank showed last: most show the same again.
  struct Reached {
    ShmRange range;
    void* data = nullptr;
  };
  std::vector<Reached> reached_;
  const MemoryOperations kernels_{};
  std::uint64_t session_ = 0;  // the latest one that this rank came to
  // The last answer of range_of(): most calls ask for the same again.
  struct Found {
    const void* data = nullptr;
    std::int64_t bytes = 0;
    std::uint64_t version = 0;
    ShmRange range;
  };
  Found found_;
  int window_ = 1;  // the one that window() gave last
};

}  // namespace ringlet::comm
