#include "comm/transport/shm/shm_peer_access.h"

#include <fmt/format.h>

#include <exception>

#include "base/error.h"
#include "comm/processes/joined_group.h"
#include "comm/report/exchange_report.h"
#include "comm/transport/peer_memory.h"

namespace ringlet::comm {

ShmPeerAccess::ShmPeerAccess(ShmShared& shared, Transport& transport,
                             RankWait<JoinedGroup>& waiting)
    : PeerRanges(transport, kernels_, last_cache_bytes()),
      memory_(shared.memory),
      heap_(shared.heap),
      reach_(shared.reach),
      waiting_(waiting),
      handed_(heap_, shared.mesh, transport.rank(), transport.world().local_size),
      reached_(static_cast<std::size_t>(transport.size())) {}

const ShmRange& ShmPeerAccess::range_of(const View& data) {
  const std::uint64_t version = heap_.version();
  if (found_.data != data.data() || found_.bytes != data.bytes() || found_.version != version) {
    found_ = {data.data(), data.bytes(), version, heap_.find(data.data(), data.bytes())};
  }
  return found_.range;
}

bool ShmPeerAccess::can_show(const View& mine) { return range_of(mine).in_reach(); }

View ShmPeerAccess::window() {
  window_ = 1 - window_;
  return memory_.window(transport().rank(), window_);
}

void ShmPeerAccess::open(Stream& stream, const View& mine) {
  const ShmRange range = range_of(mine);
  require(range.in_reach() || mine.bytes() == 0 ||
              mine.data() == memory_.window(transport().rank(), window_).data(),
          "ShmPeerAccess::open", "what is shown is the window, or of Transport::allocator()");
  if (range.in_reach()) handed_.hand_over(range);
  show_and_meet_alike(stream, mine.bytes(), range);
  set_ranges(mine, range.in_reach());
}

bool ShmPeerAccess::open_where_all_can(Stream& stream, const View& mine) {
  const ShmRange range = range_of(mine);
  if (range.in_reach()) handed_.hand_over(range);
  const std::int64_t bytes = mine.bytes();
  meet_and_show(stream, bytes, range, [this, bytes](int peer) { check(peer, bytes, false); });
  bool all_can = true;
  for (int rank = 0; rank < transport().size(); ++rank) {
    all_can = all_can && shown_by(rank).range.in_reach();
  }
  if (all_can) {
    set_ranges(mine, true);
    return true;
  }
  // What was handed over is taken nevertheless: else it would wait, and fill up the way.
  for (int rank = 0; rank < transport().size(); ++rank) {
    if (rank != transport().rank() && shown_by(rank).range.in_reach()) data_of(rank);
  }
  return false;
}

void ShmPeerAccess::set_ranges(const View& mine, bool in_reach) {
  set_kind(mine);
  for (int rank = 0; rank < transport().size(); ++rank) {
    void* data = memory_.window(rank, window_).data();
    if (in_reach) {
      const bool own = rank == transport().rank();
      data = own ? mine.data() : data_of(rank);
    }
    set_range(rank, data);
  }
}

void* ShmPeerAccess::data_of(int rank) {
  const ShmRange& range = shown_by(rank).range;
  Reached& latest = reached_[static_cast<std::size_t>(rank)];
  if (latest.range == range) return latest.data;
  try {
    latest = {range, reach_.at(rank, range)};
  } catch (const CommError& error) {  // that rank may have given up its memory with the world
    waiting_.fail_unless_explained<CommError>(error.what());
  }
  return latest.data;
}

void ShmPeerAccess::meet(Stream& stream) { show_and_meet_alike(stream, 0, {}); }

void ShmPeerAccess::show_and_meet_alike(Stream& stream, std::int64_t bytes, const ShmRange& range) {
  meet_and_show(stream, bytes, range, [this, bytes, in_reach = range.in_reach()](int peer) {
    check_range(peer, in_reach);
    check(peer, bytes, false);
  });
}

void ShmPeerAccess::abandon(Stream&, const char* reason) noexcept { transport().abort(reason); }

template <class Check>
void ShmPeerAccess::meet_and_show(Stream& stream, std::int64_t bytes, const ShmRange& range,
                                  Check check_peer) {
  ++session_;
  waiting_.throw_if_aborted();
  ShmBoard::Shown& mine = shown_by(transport().rank());
  mine.bytes = bytes;
  mine.tag = transport().recorder().current();
  mine.range = range;
  meet_others(stream, false, check_peer);
}

/// Shows what is ready to be shown, and waits until all others have shown theirs.
template <class Check>
void ShmPeerAccess::meet_others(Stream& stream, bool shares, Check check_peer) {
  const Meeting meeting(*this, stream);
  shown_by(transport().rank()).session.show(session_, shares);
  waiting_.wait_for_all(
      transport().size(), [this](int peer) { return shown_by(peer).session.shows(session_); },
      check_peer, [this](int peer) { memory_.board(peer).doorbell.ring(); });
}

void ShmPeerAccess::share(Stream& stream, const void* data, std::int64_t bytes) {
  ++session_;
  waiting_.throw_if_aborted();
  ShmBoard::Shown& shown = shown_by(transport().rank());
  copy_shared(stream, data, bytes, shown.shared(bytes));
  shown.bytes = bytes;
  shown.tag = transport().recorder().current();
  meet_others(stream, true, [this, bytes](int peer) { check(peer, bytes, true); });
  take_back_next(memory_.board(transport().rank()).shown[(session_ + 1) % 2], bytes);
  for (int rank = 0; rank < transport().size(); ++rank) {
    set_shared(rank, shown_by(rank).shared(bytes));
  }
}

// They read nothing of this rank's own board, whose line the others fetch just now.

void ShmPeerAccess::check_range(int peer, bool in_reach) {
  const ShmBoard::Shown& theirs = shown_by(peer);
  const bool is_alike = theirs.session.shares() || theirs.range.in_reach() == in_reach;
  if (is_alike || theirs.tag != transport().recorder().current()) return;
  const int rank = transport().rank();
  waiting_.fail<MismatchError>(
      fmt::format("rank {} sums memory that others reach and rank {} memory that they do not, in "
                  "{}; take it from Transport::allocator() on all ranks, or on none",
                  in_reach ? rank : peer, in_reach ? peer : rank,
                  describe(transport().recorder().latest().value_or(CollectiveRecord{}))));
}

void ShmPeerAccess::check(int peer, std::int64_t bytes, bool shares) {
  const ShmBoard::Shown& theirs = shown_by(peer);
  if (theirs.bytes != bytes || theirs.tag != transport().recorder().current()) {
    const auto status = transport().look_at(peer);
    waiting_.fail<MismatchError>(
        explain_mismatch(peer, theirs.bytes, status ? status->latest : std::nullopt,
                         transport().rank(), bytes, transport().recorder().latest()));
  }
  if (theirs.session.shares() != shares) fail_of_unlike_ways(waiting_, peer);
}

}  // namespace ringlet::comm
