// WaitWatch: watches the waits of a rank inside of a library.
//
// Such a wait cannot be cut into slices: a library that runs into its own time-out may end its
// connections by that (Gloo does). So the library waits without end, and a thread of this object
// looks whether anything moves. Where nothing has for the transport's time-out, and nobody works
// (patience.h), it gives up on behalf of the rank; without a time-out, where the
// peer has ended and never comes.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "comm/core/transport.h"

namespace ringlet::comm {

class WaitWatch {
 public:
  /// give_up(peer): the rank has waited in vain; called on the watch's thread. moves() grows when
  /// something moves inside of a wait; any thread. `transport` outlives this.
  WaitWatch(const Transport& transport, std::function<std::uint64_t()> moves,
            std::function<void(int peer)> give_up);

  /// A wait for `peer`, from construction to destruction. One at a time.
  class Waiting {
   public:
    Waiting(WaitWatch& watch, int peer) : watch_(watch) {
      watch_.peer_.store(peer, std::memory_order_relaxed);
      watch_.turn_.fetch_add(1, std::memory_order_release);
    }
    ~Waiting() { watch_.turn_.fetch_add(1, std::memory_order_release); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    WaitWatch& watch_;
  };

 private:
  void watch(const std::stop_token& stop);
  std::uint64_t now() const { return turn_.load(std::memory_order_acquire) + 2 * moves_(); }

  const Transport& transport_;
  std::function<std::uint64_t()> moves_;
  std::function<void(int peer)> give_up_;
  std::atomic<std::uint64_t> turn_{0};  // odd: in a wait
  std::atomic<int> peer_{0};
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace ringlet::comm
