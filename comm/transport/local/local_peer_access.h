// LocalPeerAccess: one rank's PeerAccess in a LocalGroup.
//
// A session is opened over the boards of the group (PeerBoard): the rank shows its address there,
// rings the others, and waits for all of them. For streams that work behind the host the meeting
// happens between the host threads, and events order the streams: each records one when it
// comes, and waits for those of all others.
//
// Closing is a meeting as well, in which nothing is shown. What share() shows lies on the
// boards themselves.
#pragma once

#include <cstdint>

#include "comm/transport/local/local_transport.h"
#include "comm/transport/peer_ranges.h"
#include "comm/transport/rank_wait.h"

namespace ringlet::comm {

class LocalPeerAccess final : public PeerRanges {
 public:
  /// For the rank of `transport`. Both outlive this.
  LocalPeerAccess(LocalGroup& group, LocalChannel& channel, Transport& transport);

  void open(Stream& stream, const View& mine) override;
  void meet(Stream& stream) override;
  void close(Stream& stream) override;
  void leave(Stream& stream) override;
  void abandon(Stream& stream, const char* reason) noexcept override;
  void settle() noexcept override;
  void share(Stream& stream, const void* data, std::int64_t bytes) override;

 private:
  using Shown = PeerBoard::Shown;

  PeerBoard& my_board() { return channel_.board(transport().rank()); }
  Shown& shown_by(int rank) { return channel_.board(rank).shown[session_ % 2]; }
  void meet_and_show(Stream& stream, const View& mine);
  void meet_others(const Stream& stream, std::int64_t bytes, bool shares);
  void check(const Stream& stream, int peer, std::int64_t bytes, bool shares);
  void note_reads(Stream& stream);
  void finish_reading(Stream& stream);

  LocalGroup& group_;
  LocalChannel& channel_;
  RankWait<LocalGroup> waiting_;
  std::uint64_t session_ = 0;  // the latest one that this rank came to
};

}  // namespace ringlet::comm
