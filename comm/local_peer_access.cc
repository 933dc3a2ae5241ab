#include "comm/local_peer_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>

#include "comm/mismatch_report.h"
#include "kernels/error.h"

namespace ringlet::comm {

LocalPeerAccess::LocalPeerAccess(LocalGroup& group, Transport& transport)
    : group_(group), transport_(transport), waiting_(group, transport) {
  const auto ranks = static_cast<std::size_t>(transport.size());
  ranges_.resize(ranks);
  xs_.reserve(ranks);
  ys_.reserve(ranks);
}

void LocalPeerAccess::open(Stream& stream, const View& mine) { meet(stream, mine); }

void LocalPeerAccess::close(Stream& stream) {
  finish_reading(stream);
  meet(stream, {});
  finish_reading(stream);
}

void LocalPeerAccess::leave(Stream& stream) { finish_reading(stream); }

void LocalPeerAccess::abandon(Stream& stream, const char* reason) noexcept {
  transport_.abort(reason);
  try {
    finish_reading(stream);
  } catch (const std::exception&) {  // then the device has failed and reads no more
    my_board().progress.store(2 * session_);
  }
  settle();
}

/// Others still read what this rank has shown last if they have come to that session and have not
/// done with it. After an abort they may never have come: then it is enough that they are outside
/// of any, since whoever comes now sees the abort before it reads.
void LocalPeerAccess::settle() noexcept {
  for (int rank = 0; rank < group_.size(); ++rank) {
    PeerBoard& board = group_.board(rank);
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

void LocalPeerAccess::meet(Stream& stream, const View& mine) {
  ++session_;
  PeerBoard& board = my_board();
  board.progress.store(2 * session_ - 1);
  try {
    waiting_.throw_if_aborted();
    Shown& shown = shown_by(transport_.rank());
    shown.data = mine.data();
    shown.bytes = mine.bytes();
    shown.tag = transport_.recorder().current();
    shown.device = stream.device().id();
    if (!stream.in_order_with_host()) board.arrived[session_ % 2].record(stream);
    shown.session.store(session_);
    for (int peer = 0; peer < group_.size(); ++peer) group_.doorbell(peer).ring();
    for (int peer = 0; peer < group_.size(); ++peer) await(stream, peer, mine);
  } catch (...) {
    board.progress.store(2 * session_);
    throw;
  }
}

void LocalPeerAccess::await(Stream& stream, int peer, const View& mine) {
  Shown& theirs = shown_by(peer);
  if (peer != transport_.rank()) {
    waiting_.wait(peer, [this, &theirs] { return theirs.session.load() == session_; });
    check(stream, peer, theirs, mine);
    if (!stream.in_order_with_host()) group_.board(peer).arrived[session_ % 2].hold(stream);
  }
  ranges_[static_cast<std::size_t>(peer)] = View(theirs.data, mine.shape(), mine.dtype());
}

void LocalPeerAccess::check(const Stream& stream, int peer, const Shown& theirs, const View& mine) {
  const Device& device = stream.device();
  if (!device.reads_memory_of(theirs.device)) {
    waiting_.fail<ContractError>(
        fmt::format("{} of rank {} does not reach the memory of {} of rank {}, which one-shot and "
                    "two-shot need; choose another --sync",
                    device.id().to_string(), transport_.rank(), theirs.device.to_string(), peer));
  }
  const CollectiveTag& tag = transport_.recorder().current();
  if (theirs.bytes == mine.bytes() && theirs.tag == tag) return;
  waiting_.fail<MismatchError>(
      explain_mismatch(peer, theirs.bytes, group_.transport(peer).recorder().latest(),
                       transport_.rank(), mine.bytes(), transport_.recorder().latest()));
}

/// From here on this rank keeps its hands off others' memory.
void LocalPeerAccess::finish_reading(Stream& stream) {
  PeerBoard& board = my_board();
  if (!stream.in_order_with_host()) {
    const std::lock_guard lock(board.done_mutex);
    board.done.record(stream);
  }
  board.progress.store(2 * session_);
}

void LocalPeerAccess::reduce_for_all(Stream& stream, ReduceOp op, std::int64_t begin,
                                     std::int64_t end) {
  ys_.clear();
  for (const View& range : ranges_) ys_.push_back(range.slice(begin, end));
  const std::int64_t others = transport_.size() - 1;
  reduce(stream, op, begin, end, 2 * others * ys_[0].bytes());
}

void LocalPeerAccess::copy(Stream& stream, const ConstView& x, const View& y) {
  group_.operations_->copy(stream, x, y);
}

void LocalPeerAccess::reduce_into(Stream& stream, ReduceOp op, const View& mine) {
  ys_.assign(1, mine);
  const std::int64_t others = transport_.size() - 1;
  reduce(stream, op, 0, mine.count(), others * mine.bytes());
}

void LocalPeerAccess::reduce(Stream& stream, ReduceOp op, std::int64_t begin, std::int64_t end,
                             std::int64_t bytes_moved) {
  xs_.clear();
  for (const View& range : ranges_) xs_.push_back(range.slice(begin, end));
  const ScopedSpan span(stream.tracer(), "direct", "exchange", bytes_moved);
  const std::int64_t bytes_of_all = transport_.size() * ranges_[0].bytes();
  const bool streams = ys_.size() > 1 && bytes_of_all > group_.stream_from_;
  const ReduceOptions options{.divisor = transport_.size(),
                              .stores = streams ? Stores::streaming : Stores::cached};
  group_.operations_->reduce(stream, op, xs_, ys_, options);
  transport_.count_moved(bytes_moved);
}

}  // namespace ringlet::comm
