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
  meet_and_show(stream, mine.bytes(), range);
  for (int rank = 0; rank < transport().size(); ++rank) {
    void* data = memory_.window(rank, window_).data();
    if (range.in_reach()) {
      const bool own = rank == transport().rank();
      data = own ? mine.data() : data_of(rank);
    }
    set_range(rank, View(data, mine.shape(), mine.dtype()));
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

void ShmPeerAccess::meet(Stream& stream) { meet_and_show(stream, 0, {}); }

void ShmPeerAccess::abandon(Stream&, const char* reason) noexcept { transport().abort(reason); }

void ShmPeerAccess::meet_and_show(Stream& stream, std::int64_t bytes, const ShmRange& range) {
  ++session_;
  waiting_.throw_if_aborted();
  ShmBoard::Shown& mine = shown_by(transport().rank());
  mine.bytes = bytes;
  mine.tag = transport().recorder().current();
  mine.range = range;
  meet_others(stream);
}

/// Shows what is ready to be shown, and waits until all others have shown theirs.
void ShmPeerAccess::meet_others(Stream& stream) {
  const Meeting meeting(*this, stream);
  ShmBoard::Shown& mine = shown_by(transport().rank());
  mine.session.store(session_);
  waiting_.wait_for_all(
      transport().size(), [this](int peer) { return shown_by(peer).session.load() == session_; },
      [&](int peer) { check(peer, mine, shown_by(peer)); },
      [this](int peer) { memory_.board(peer).doorbell.ring(); });
}

bool ShmPeerAccess::reduce_short(Stream& stream, ReduceOp op, const View& data) {
  const std::int64_t bytes = data.bytes();
  if (!takes_short(stream, bytes)) return false;
  try {
    ++session_;
    waiting_.throw_if_aborted();
    ShmBoard::Shown& mine = shown_by(transport().rank());
    copy_short(stream, data, mine.copy.data());
    mine.bytes = bytes;
    mine.tag = transport().recorder().current();
    mine.range = {};
    meet_others(stream);
    for (int rank = 0; rank < transport().size(); ++rank) {
      set_source(rank, shown_by(rank).copy.data());
    }
    reduce_sources(stream, op, data);
    return true;
  } catch (const std::exception& error) {
    abandon(stream, error.what());
    throw;
  }
}

void ShmPeerAccess::check(int peer, const ShmBoard::Shown& mine, const ShmBoard::Shown& theirs) {
  const bool in_reach = mine.range.in_reach();
  const bool alike = in_reach == theirs.range.in_reach();
  if (theirs.tag == mine.tag && !alike) {
    const int rank = transport().rank();
    waiting_.fail<MismatchError>(
        fmt::format("rank {} sums memory that others reach and rank {} memory that they do not, in "
                    "{}; take it from Transport::allocator() on all ranks, or on none",
                    in_reach ? rank : peer, in_reach ? peer : rank,
                    describe(*transport().recorder().latest())));
  }
  if (theirs.bytes == mine.bytes && theirs.tag == mine.tag) return;
  const auto status = transport().look_at(peer);
  waiting_.fail<MismatchError>(
      explain_mismatch(peer, theirs.bytes, status ? status->latest : std::nullopt,
                       transport().rank(), mine.bytes, transport().recorder().latest()));
}

}  // namespace ringlet::comm
