// RecordingPeers: a PeerAccess that notes what a rank does with others' memory, and moves nothing.
#pragma once

#include <array>
#include <cstdint>

#include "comm/core/peer_access.h"
#include "comm/schedule/schedule.h"
#include "kernels/memory.h"

namespace ringlet::comm {

/// As a number among the addresses of all ranks. Of a device without memory.
std::int64_t address_of(const ConstView& data);
Range range_of(const ConstView& data);

class RecordingPeers final : public PeerAccess {
 public:
  /// `window_bytes`: as processes have; 0: as threads have it, which show any memory. `into`
  /// outlives this.
  RecordingPeers(RankSchedule& into, Device& device, std::int64_t window_bytes);

  std::int64_t window_bytes() const override { return windows_[0].bytes(); }
  bool can_show(const View& mine) override;
  View window() override;

  void open(Stream& stream, const View& mine) override;
  void meet(Stream& stream) override;
  void close(Stream& stream) override { meet(stream); }
  void leave(Stream& /*stream*/) override {}
  void abandon(Stream& /*stream*/, const char* /*reason*/) noexcept override {}
  void settle() noexcept override {}

  void reduce_for_all(Stream& stream, ReduceOp op, std::int64_t begin, std::int64_t end) override;
  void copy(Stream& stream, const ConstView& x, const View& y) override;
  void reduce_into(Stream& stream, ReduceOp op, const View& mine) override;
  void reduce_part(Stream& stream, ReduceOp op, std::int64_t begin, const View& mine) override;
  void reduce_own(Stream& stream, ReduceOp op, std::int64_t begin, std::int64_t end) override;
  void read(Stream& stream, int rank, std::int64_t begin, const View& mine) override;
  void reduce_to(Stream& stream, ReduceOp op, int root, std::int64_t begin,
                 std::int64_t end) override;
  void spread(Stream& stream, int root, std::int64_t begin, std::int64_t end) override;

 private:
  void add(const Touch& touch);

  RankSchedule& into_;
  std::array<Buffer, 2> windows_;
  std::size_t window_ = 1;        // that window() gave last
  std::int64_t size_of_one_ = 0;  // element of what is shown, in bytes
};

}  // namespace ringlet::comm
