// LocalPeerAccess: one rank's PeerAccess in a LocalGroup.
//
// A session is opened over the boards of the group (PeerBoard): the rank shows its address there,
// rings the others, and waits for all of them. For streams that work behind the host the meeting
// takes place between the host threads, and events order the streams: each records one when it
// comes, and waits for those of all others.
//
// Closing is a meeting as well, in which nothing is shown.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/local_transport.h"
#include "comm/local_wait.h"
#include "comm/peer_access.h"

namespace ringlet::comm {

class LocalPeerAccess final : public PeerAccess {
 public:
  /// For the rank of `transport`. Both outlive this.
  LocalPeerAccess(LocalGroup& group, Transport& transport);

  void open(Stream& stream, const View& mine) override;
  void close(Stream& stream) override;
  void leave(Stream& stream) override;
  void abandon(Stream& stream, const char* reason) noexcept override;
  void settle() noexcept override;
  void reduce_for_all(Stream& stream, ReduceOp op, std::int64_t begin, std::int64_t end) override;
  void copy(Stream& stream, const ConstView& x, const View& y) override;
  void reduce_into(Stream& stream, ReduceOp op, const View& mine) override;

 private:
  using Shown = PeerBoard::Shown;

  PeerBoard& my_board() { return group_.board(transport_.rank()); }
  Shown& shown_by(int rank) { return group_.board(rank).shown[session_ % 2]; }
  void meet(Stream& stream, const View& mine);
  void await(Stream& stream, int peer, const View& mine);
  void check(const Stream& stream, int peer, const Shown& theirs, const View& mine);
  void finish_reading(Stream& stream);
  void reduce(Stream& stream, ReduceOp op, std::int64_t begin, std::int64_t end,
              std::int64_t bytes_moved);

  LocalGroup& group_;
  Transport& transport_;
  LocalWait waiting_;
  std::uint64_t session_ = 0;  // the latest one that this rank came to
  std::vector<View> ranges_;   // by rank, of the open session
  std::vector<ConstView> xs_;  // for reduce()
  std::vector<View> ys_;
};

}  // namespace ringlet::comm
