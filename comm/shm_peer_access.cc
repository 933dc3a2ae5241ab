#include "comm/shm_peer_access.h"

#include <limits>

#include "comm/mismatch_report.h"
#include "comm/process_group.h"
#include "kernels/error.h"

namespace ringlet::comm {

namespace {

constexpr std::int64_t kNeverStream =
    std::numeric_limits<std::int64_t>::max();  // windows are small

}  // namespace

ShmPeerAccess::ShmPeerAccess(const ShmMemory& memory, Transport& transport,
                             RankWait<ProcessGroup>& waiting)
    : PeerRanges(transport, kernels_, kNeverStream), memory_(memory), waiting_(waiting) {}

View ShmPeerAccess::window() {
  window_ = 1 - window_;
  return memory_.window(transport().rank(), window_);
}

void ShmPeerAccess::open(Stream&, const View& mine) {
  require(mine.bytes() == 0 || mine.data() == memory_.window(transport().rank(), window_).data(),
          "ShmPeerAccess::open", "what is shown is the window");
  meet_and_show(mine.bytes());
  for (int rank = 0; rank < transport().size(); ++rank) {
    set_range(rank, View(memory_.window(rank, window_).data(), mine.shape(), mine.dtype()));
  }
}

void ShmPeerAccess::meet(Stream&) { meet_and_show(0); }

void ShmPeerAccess::abandon(Stream&, const char* reason) noexcept { transport().abort(reason); }

void ShmPeerAccess::meet_and_show(std::int64_t bytes) {
  ++session_;
  waiting_.throw_if_aborted();
  ShmBoard::Shown& mine = shown_by(transport().rank());
  mine.bytes = bytes;
  mine.tag = transport().recorder().current();
  mine.session.store(session_);
  for (int peer = 0; peer < transport().size(); ++peer) {
    if (peer != transport().rank()) memory_.board(peer).doorbell.ring();
  }
  for (int peer = 0; peer < transport().size(); ++peer) {
    if (peer == transport().rank()) continue;
    const ShmBoard::Shown& theirs = shown_by(peer);
    waiting_.wait(peer, [this, &theirs] { return theirs.session.load() == session_; });
    if (theirs.bytes == bytes && theirs.tag == mine.tag) continue;
    const auto status = transport().look_at(peer);
    waiting_.fail<MismatchError>(
        explain_mismatch(peer, theirs.bytes, status ? status->latest : std::nullopt,
                         transport().rank(), bytes, transport().recorder().latest()));
  }
}

}  // namespace ringlet::comm
