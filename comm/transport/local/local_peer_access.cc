#include "comm/transport/local/local_peer_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "comm/report/exchange_report.h"

namespace ringlet::comm {

LocalPeerAccess::LocalPeerAccess(LocalGroup& group, LocalChannel& channel, Transport& transport)
    : PeerRanges(transport, *group.operations_, group.stream_from_),
      group_(group),
      channel_(channel),
      waiting_(group, transport, channel.doorbell(transport.rank()), group.spin_) {}

void LocalPeerAccess::open(Stream& stream, const View& mine) {
  meet_and_show(stream, mine);
  set_kind(mine);
  for (int rank = 0; rank < group_.replicas(); ++rank) set_range(rank, shown_by(rank).data);
}

/// What this rank has asked its stream to read so far counts as read where `done` says so: another
/// rank that fails may find this one in the next session already (settle()).
void LocalPeerAccess::meet(Stream& stream) {
  note_reads(stream);
  meet_and_show(stream, {});
}

void LocalPeerAccess::close(Stream& stream) {
  finish_reading(stream);
  meet_and_show(stream, {});
  finish_reading(stream);
}

void LocalPeerAccess::leave(Stream& stream) { finish_reading(stream); }

void LocalPeerAccess::abandon(Stream& stream, const char* reason) noexcept {
  transport().abort(reason);
  try {
    finish_reading(stream);
  } catch (const std::exception&) {  // then the device has failed and reads no more
    my_board().progress.store(2 * session_);
  }
  settle();
}

/// Waits until no other rank reads what this one has shown last. A rank still reads if it has come
/// to that session and has not finished with it. After an abort it may never have come. Then it is
/// enough that it is in no session, since a rank that comes now sees the abort before it reads.
void LocalPeerAccess::settle() noexcept {
  for (int rank = 0; rank < group_.replicas(); ++rank) {
    PeerBoard& board = channel_.board(rank);
    const auto has_settled = [this, &board] {
      const std::uint64_t progress = board.progress.load();
      return progress >= 2 * session_ || (group_.aborted() && progress % 2 == 0);
    };
    while (!has_settled()) std::this_thread::yield();
    try {
      const std::lock_guard lock(board.done_mutex);
      board.done.synchronize();
    } catch (const std::exception&) {  // then that rank's device has failed and reads no more
    }
  }
}

void LocalPeerAccess::meet_and_show(Stream& stream, const View& mine) {
  const Meeting meeting(*this, stream);
  ++session_;
  PeerBoard& board = my_board();
  board.progress.store(2 * session_ - 1);
  try {
    waiting_.throw_if_aborted();
    Shown& shown = shown_by(transport().rank());
    shown.data = mine.data();
    shown.bytes = mine.bytes();
    shown.tag = transport().recorder().current();
    shown.device = stream.device().id();
    if (!stream.in_order_with_host()) board.arrived[session_ % 2].record(stream);
    meet_others(stream, mine.bytes(), false);
    if (stream.in_order_with_host()) return;
    for (int peer = 0; peer < group_.replicas(); ++peer) {
      if (peer != transport().rank()) channel_.board(peer).arrived[session_ % 2].hold(stream);
    }
  } catch (...) {
    board.progress.store(2 * session_);
    throw;
  }
}

/// Shows what is ready to be shown, and waits until all others have shown theirs.
void LocalPeerAccess::meet_others(const Stream& stream, std::int64_t bytes, bool shares) {
  shown_by(transport().rank()).session.show(session_, shares);
  waiting_.wait_for_all(
      group_.replicas(), [this](int peer) { return shown_by(peer).session.shows(session_); },
      [&](int peer) { check(stream, peer, bytes, shares); },
      [this](int peer) { channel_.doorbell(peer).ring(); });
}

/// Unlike the memory that open() shows, a board is there as long as the group. So nobody need know
/// that this rank is about to read others'.
void LocalPeerAccess::share(Stream& stream, const void* data, std::int64_t bytes) {
  ++session_;
  waiting_.throw_if_aborted();
  Shown& shown = shown_by(transport().rank());
  copy_shared(stream, data, bytes, shown.shared(bytes));
  shown.bytes = bytes;
  shown.tag = transport().recorder().current();
  shown.device = stream.device().id();
  {
    const Meeting meeting(*this, stream);
    meet_others(stream, bytes, true);
  }
  take_back_next(my_board().shown[(session_ + 1) % 2], bytes);
  for (int rank = 0; rank < group_.replicas(); ++rank) {
    set_shared(rank, shown_by(rank).shared(bytes));
  }
}

/// Reads nothing of this rank's own board, whose line the others fetch just now.
void LocalPeerAccess::check(const Stream& stream, int peer, std::int64_t bytes, bool shares) {
  const Shown& theirs = shown_by(peer);
  const CollectiveTag& tag = transport().recorder().current();
  const int rank = transport().rank();
  if (theirs.bytes != bytes || theirs.tag != tag) {
    waiting_.fail<MismatchError>(explain_mismatch(peer, theirs.bytes,
                                                  channel_.transport(peer).recorder().latest(),
                                                  rank, bytes, transport().recorder().latest()));
  }
  if (theirs.session.shares() != shares) fail_of_unlike_ways(waiting_, peer);
  const Device& device = stream.device();
  if (!device.reads_memory_of(theirs.device)) {
    waiting_.fail<ContractError>(
        fmt::format("{} of rank {} does not reach the memory of {} of rank {}, which one-shot and "
                    "two-shot need; choose another --sync",
                    device.id().to_string(), rank, theirs.device.to_string(), peer));
  }
}

void LocalPeerAccess::note_reads(Stream& stream) {
  if (stream.in_order_with_host()) return;
  PeerBoard& board = my_board();
  const std::lock_guard lock(board.done_mutex);
  board.done.record(stream);
}

/// From here on this rank does not touch other ranks' memory.
void LocalPeerAccess::finish_reading(Stream& stream) {
  note_reads(stream);
  my_board().progress.store(2 * session_, std::memory_order_release);
}

}  // namespace ringlet::comm
