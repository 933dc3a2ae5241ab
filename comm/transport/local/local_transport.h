// LocalGroup: the transport between replicas that are threads of one process.
//
// There is one mailbox for each pair (from, to), with a few slots that are used in turn. The sender
// puts the address and the length of its data in the next one; the receiver copies or adds straight
// from the sender's memory and says that it has taken the message; the sender, which has waited for
// that, goes on. So nothing is copied twice, and when exchange returns both sides are done.
//
//   posted --receiver--> reading --receiver--> taken
//   posted --sender, on an abort--> taken_back
//
// The last line is why `reading` exists: a sender that leaves because of an error may free its
// memory, so it takes its message back, or waits out a receiver that is in the middle of it.
//
// A short message between threads of processors is copied by its sender, which then goes on at
// once. That takes less time than waiting for the other rank to come and read, and where ranks take
// turns on a processor it spares a change from one to the other. The shortest lie in the slot
// itself, in the cache line behind that which the receiver looks at (peer_memory.h).
//
// On streams that work behind the host (CUDA: one GPU, or several) the same handshake happens
// between the host threads, and moves nothing: exchange returns before its data have moved, and two
// events of the mailbox order the streams.
//
//   sender's stream     ... produce out | sent .........................: taken | overwrite out ...
//                                           :                           :
//   receiver's stream   ................... : sent | copy or add | taken | read in ...
//
// A stream waits only for records that were made before. So the waits of all streams can form no
// circle: whatever the hosts do next, an abort included, the devices come to rest. What is added to
// in place is sent from a copy in the stream's workspace. Memory of a GPU that the receiver's
// cannot read in place is first copied into the receiver's workspace.
//
// The group may be a part of a larger world: the ranks [first_rank, first_rank + replicas) of
// one process among several (process_group.h). Ranks are the world's everywhere; exchanges reach
// those of the group.
//
// Between a GPU and a processor the GPU's rank does the work (LocalGroupOptions::kinds): it sends
// from a copy in host memory, and copies what arrives from there, and waits for both.
//
// Waiting spins for a few microseconds (only where every rank can have a processor of those that
// this process may use), then sleeps on the rank's own doorbell, which its peers ring only if
// somebody sleeps there.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "comm/core/group.h"
#include "comm/core/transport.h"
#include "comm/transport/doorbell.h"
#include "comm/transport/lazy_event.h"
#include "comm/transport/memory_operations.h"
#include "comm/transport/peer_memory.h"
#include "comm/transport/session_mark.h"

namespace ringlet::comm {

struct LocalGroupOptions {
  /// Longest time to spin before sleeping; negative: chosen from ranks and processors.
  double spin_microseconds = -1;
  /// Moves data of devices, and outlives the group; null: Ringlet's kernels.
  const MemoryOperations* operations = nullptr;
  /// From so many bytes over all ranks on, a reduction into everybody's memory writes past the
  /// caches. Negative: the size of the processor's last-level cache. Smaller results stay there for
  /// their next reader.
  std::int64_t stream_from = -1;
  /// Whether each rank's device reads and writes the memory of all others. Without it there is no
  /// peer access.
  bool in_reach = true;
  /// Of the device of each of the group's ranks, where they are not all of one kind.
  std::vector<DeviceKind> kinds{};
  int first_rank = 0;  ///< the group's ranks are first_rank, first_rank + 1, ...
  int world_size = 0;  ///< ranks in the whole world; 0: the group is the world
  /// What is known of the ranks of other processes, for messages.
  std::function<std::optional<RankStatus>(int rank, int channel)> look_elsewhere = [](int, int) {
    return std::nullopt;
  };
};

class LocalPeerAccess;
class LocalTransport;

/// Messages on their way from one rank to another. Message n (1, 2, ...) lies in slot n % kSlots.
struct Mailbox {
  static constexpr std::uint64_t kSlots = 4;
  static constexpr std::int64_t kLongestInside = 64;  ///< bytes of a copy in the slot
  static constexpr std::int64_t kLongestCopy = 2048;  ///< bytes of a message that is copied
  enum State : int { posted, reading, taken_back };

  /// One cache line is all that a receiver has to fetch beside the data; those inside come with it.
  struct alignas(kLinesAtOnce) Slot {
    std::atomic<std::uint64_t> number{0};  ///< of the message; the sender writes it last
    const void* data = nullptr;
    std::int64_t bytes = 0;
    CollectiveTag tag;
    DeviceId device;                   ///< whose memory the data are
    std::atomic<State> state{posted};  ///< of what waits at its sender
    bool is_copy = false;              ///< nobody waits until it has been read
    bool in_order_with_host = true;    ///< the sender's stream
    alignas(64) std::array<std::byte, kLongestInside> inside{};
  };
  static_assert(sizeof(Slot) == kLinesAtOnce);
  struct Events {
    LazyEvent sent;   ///< recorded by the sender's stream
    LazyEvent taken;  ///< recorded by the receiver's stream
  };
  struct alignas(64) Copy {
    std::array<std::byte, kLongestCopy> bytes;
  };

  /// Messages, as the receiver tells it: of copies only of every second, since each time costs it a
  /// cache line. So the sender finds a free slot at the latest when all four have been read.
  alignas(kLinesAtOnce) std::atomic<std::uint64_t> taken{0};
  std::array<Slot, kSlots> slots;
  std::array<Events, kSlots> events;

  static bool is_told(std::uint64_t number, bool is_copy) { return !is_copy || number % 2 == 0; }
  Slot& slot(std::uint64_t number) { return slots[static_cast<std::size_t>(number % kSlots)]; }
  Events& events_of(std::uint64_t number) {
    return events[static_cast<std::size_t>(number % kSlots)];
  }
};

/// What a rank shows the others (local_peer_access.h). Sessions are numbered 1, 2, 3, ...; all
/// ranks open the same ones.
struct PeerBoard {
  /// What is shown in one session. A rank comes to session n + 2 only when everybody has come to
  /// n + 1 and has therefore read what was shown in n: two of these are enough.
  struct alignas(kLinesAtOnce) Shown {           // NOLINT(*-member-init): of a union one is
    static constexpr std::int64_t kInside = 16;  ///< bytes that share() shows in one line
    SessionMark session;                         ///< written last
    std::int64_t bytes = 0;
    CollectiveTag tag;
    DeviceId device;
    union {
      void* data;  ///< what open() shows
      std::array<std::byte, kInside> inside{};
    };
    alignas(64) std::array<std::byte, PeerAccess::kLongestShared> copy{};

    /// Where share() shows so many bytes.
    std::byte* shared(std::int64_t of) { return of <= kInside ? inside.data() : copy.data(); }
  };
  static_assert(offsetof(Shown, copy) == 64);  // all before it is one line
  Shown shown[2];
  LazyEvent arrived[2];  ///< recorded by the rank's stream when it came
  /// 2n - 1 from before the rank shows itself in session n until it has finished with other ranks'
  /// memory, then 2n. Of what is shared it reads nothing but boards, and this is 2n at its end.
  alignas(64) std::atomic<std::uint64_t> progress{0};
  std::mutex done_mutex;
  LazyEvent done;  ///< recorded by the rank's stream then; others may wait while it is once more
};

/// What the ranks of a group share on one channel.
class LocalChannel {
 public:
  LocalChannel(int first_rank, int replicas);
  ~LocalChannel();
  LocalChannel(const LocalChannel&) = delete;
  LocalChannel& operator=(const LocalChannel&) = delete;

  Mailbox& mailbox(int from, int to) {
    return mailboxes_[local_index(from) * static_cast<std::size_t>(replicas_) + local_index(to)];
  }
  Doorbell& doorbell(int rank) { return doorbells_[local_index(rank)]; }
  PeerBoard& board(int rank) { return boards_[local_index(rank)]; }
  Transport& transport(int rank);

  std::vector<std::unique_ptr<LocalTransport>> transports;  // by local index

 private:
  std::size_t local_index(int rank) const { return static_cast<std::size_t>(rank - first_rank_); }

  int first_rank_;
  int replicas_;
  std::unique_ptr<Mailbox[]> mailboxes_;   // [from * replicas + to]
  std::unique_ptr<Doorbell[]> doorbells_;  // by local index
  std::unique_ptr<PeerBoard[]> boards_;    // by local index
};

/// Shared by the threads of a process.
class LocalGroup final : public Group {
 public:
  static constexpr int kMostRanks = 1024;
  /// A rank has a mailbox for each other one. Throws ContractError unless 1 <= replicas <=
  /// kMostRanks.
  explicit LocalGroup(int replicas, const LocalGroupOptions& options = {});
  ~LocalGroup() override;

  int channels() const override { return channel_count_.load(std::memory_order_acquire); }
  Transport& channel(int rank, int number) override;
  void open_channels(int count) override;
  bool abort(int rank, const std::string& message) noexcept override;
  std::string agree(const std::string& /*key*/, const std::optional<std::string>& mine,
                    double /*timeout_seconds*/) override {
    require(mine.has_value(), "Group::agree", "at least one process brings the value");
    return *mine;
  }
  std::shared_ptr<void> share(const std::string& key, std::int64_t bytes,
                              double timeout_seconds) override;
  bool aborted() const { return aborted_.load(); }
  std::optional<RootCause> root_cause() const;
  /// Tells the ranks where their world is: the machine of each of its ranks. Before their first
  /// exchange, and before another transport is made to stand on theirs.
  void set_machines(std::vector<int> machine_of);
  /// How long its ranks spin before they sleep.
  std::chrono::nanoseconds spin() const { return spin_; }

 private:
  friend class LocalPeerAccess;
  friend class LocalTransport;
  RankStatus status_of(int rank, int channel) const;
  World world_of(int rank) const;

  std::function<std::optional<RankStatus>(int rank, int channel)> look_elsewhere_;
  int processors_;  // of whoever made the group: its ranks may be bound to some
  std::chrono::nanoseconds spin_;
  std::int64_t stream_from_;
  bool in_reach_;
  std::vector<DeviceKind> kinds_;
  const MemoryOperations kernels_{};
  const MemoryOperations* operations_;
  std::vector<int> machine_of_;  // by rank; empty: all on one
  // Other threads may abort and look while some are opened.
  std::array<std::unique_ptr<LocalChannel>, kMostChannels> channels_;
  std::atomic<int> channel_count_{0};
  std::atomic<bool> aborted_{false};
  mutable std::mutex cause_mutex_;
  std::optional<RootCause> cause_;
};

}  // namespace ringlet::comm
