// SessionMark: which session a rank's board shows, and whether what it shows is shared data
// (PeerAccess::share()) or memory (open()). In memory of threads or of processes; zero at first.
#pragma once

#include <atomic>
#include <cstdint>

namespace ringlet::comm {

class SessionMark {
 public:
  /// Shows what was written to the board before. Sequentially consistent, as a doorbell asks.
  void show(std::uint64_t session, bool shares) { mark_.store(2 * session + (shares ? 1 : 0)); }
  bool shows(std::uint64_t session) const { return mark_.load() / 2 == session; }
  bool shares() const { return mark_.load() % 2 == 1; }

 private:
  std::atomic<std::uint64_t> mark_{0};
};

}  // namespace ringlet::comm
