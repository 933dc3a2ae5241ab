// LocalGroup: the transport between replicas that are threads of one process, for host memory.
//
// There is one mailbox for each pair (from, to). The sender puts the address and the length of its
// data there; the receiver copies or adds straight from the sender's memory and empties the
// mailbox; the sender, which has waited for that, goes on. So nothing is copied twice, nothing is
// allocated, and when exchange returns both sides are done.
//
//   empty --sender--> posted --receiver--> reading --receiver--> empty
//            posted --sender, on an abort--> empty
//
// The last line is why `reading` exists: a sender that leaves because of an error may free its
// memory, so it takes its message back, or waits out a receiver that is in the middle of it.
//
// Waiting spins for a few microseconds (only where every rank can have a processor), then sleeps on
// the rank's own doorbell, which its peers ring only if somebody sleeps there.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/doorbell.h"
#include "comm/transport.h"

namespace ringlet::comm {

struct LocalGroupOptions {
  /// Longest time to spin before sleeping; negative: chosen from ranks and processors.
  double spin_microseconds = -1;
};

class LocalTransport;

/// One message at a time on its way between two ranks.
struct alignas(64) Mailbox {
  enum State : int { empty, posted, reading };
  std::atomic<int> state{empty};
  // Written by the sender before `posted`, read by the receiver while `reading`.
  const void* data = nullptr;
  std::int64_t bytes = 0;
  CollectiveTag tag;
};

/// Shared by the threads of a process. Made before them, outlives them and the transports' users.
class LocalGroup {
 public:
  explicit LocalGroup(int size, const LocalGroupOptions& options = {});
  ~LocalGroup();
  LocalGroup(const LocalGroup&) = delete;
  LocalGroup& operator=(const LocalGroup&) = delete;

  int size() const { return size_; }
  Transport& transport(int rank);

  /// Any thread; the first call counts, as said at Transport::abort. True for the first.
  bool abort(int rank, const std::string& message) noexcept;
  bool aborted() const { return aborted_.load(); }
  std::optional<RootCause> root_cause() const;

 private:
  friend class LocalTransport;

  Mailbox& mailbox(int from, int to) {
    return mailboxes_[static_cast<std::size_t>(from) * static_cast<std::size_t>(size_) +
                      static_cast<std::size_t>(to)];
  }
  Doorbell& doorbell(int rank) { return doorbells_[static_cast<std::size_t>(rank)]; }

  int size_;
  std::chrono::nanoseconds spin_;
  std::vector<std::unique_ptr<LocalTransport>> transports_;  // by rank
  std::unique_ptr<Mailbox[]> mailboxes_;                     // [from * size + to]
  std::unique_ptr<Doorbell[]> doorbells_;                    // by rank
  std::atomic<bool> aborted_{false};
  mutable std::mutex cause_mutex_;
  std::optional<RootCause> cause_;
};

}  // namespace ringlet::comm
