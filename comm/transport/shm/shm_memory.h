// ShmMemory: one piece of memory that all processes of a machine map, and what lies in it. It has
// room for all ranks of the world, by their numbers.
//
//   board     one a rank      its doorbell, how far it has come, and its short data (ShmPeerAccess)
//   window    two a rank      what a rank shows the others, written by it alone
//   channel   one a pair      messages from one rank to another, in slots that are used in turn
//
// All of it is zero at first, as new memory is: so nobody has to make anything in it before the
// others look. Pages that nobody touches take no memory.
//
// Everything that ranks wait for is an atomic that is lock-free, so it works between processes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "comm/core/flight_recorder.h"
#include "comm/core/peer_access.h"
#include "comm/transport/doorbell.h"
#include "comm/transport/peer_memory.h"
#include "comm/transport/session_mark.h"
#include "comm/transport/shm/shm_heap.h"
#include "kernels/tensor.h"

namespace ringlet::comm {

/// What a rank shows the others. Sessions are numbered 1, 2, 3, ...; all ranks open the same ones.
struct ShmBoard {
  Doorbell doorbell;
  SharedRecord waits;  ///< Transport::show_wait()
  /// A rank comes to session n + 2 only when everybody has come to n + 1 and has therefore read
  /// what was shown in n: two of these are enough.
  struct alignas(kLinesAtOnce) Shown {
    static constexpr std::int64_t kInside = 24;  ///< bytes that share() shows in one line
    SessionMark session;                         ///< written last
    std::int64_t bytes = 0;
    CollectiveTag tag;
    union {
      ShmRange range;  ///< what open() shows; not in reach: a window, or nothing
      std::array<std::byte, kInside> inside{};
    };
    alignas(64) std::array<std::byte, PeerAccess::kLongestShared> copy{};

    /// Where share() shows so many bytes.
    std::byte* shared(std::int64_t of) { return of <= kInside ? inside.data() : copy.data(); }
  };
  static_assert(offsetof(Shown, copy) == 64);  // all before it is one line
  std::array<Shown, 2> shown;
};

/// Messages from one rank to another. A message is as many pieces as its bytes need, at least one;
/// its first piece says what it is. Piece k (1, 2, 3, ...) lies in slot k % kSlots.
struct ShmChannel {
  static constexpr std::uint64_t kSlots = 4;
  static constexpr std::int64_t kSlotBytes = 64 << 10;
  static constexpr std::int64_t kShort = 2048;  ///< bytes of a message

  /// One cache line is all that a receiver has to fetch beside the data, and the data's first line
  /// comes with it.
  struct alignas(kLinesAtOnce) Slot {
    std::atomic<std::uint64_t> piece{0};  ///< which one lies here; the sender writes it last
    std::int64_t message_bytes = 0;
    CollectiveTag tag;
    alignas(64) std::array<std::byte, kSlotBytes> data;
  };
  /// Pieces, as the receiver tells it: of short messages only of every second, since each time
  /// costs it a cache line. So the sender finds a free slot at the latest when all four have been
  /// read.
  alignas(kLinesAtOnce) std::atomic<std::uint64_t> taken{0};
  std::array<Slot, kSlots> slots;

  static bool is_told(std::uint64_t piece, std::int64_t message) {
    return message > kShort || piece % 2 == 0;
  }
  Slot& slot(std::uint64_t piece) { return slots[static_cast<std::size_t>(piece % kSlots)]; }
};

class ShmMemory {
 public:
  /// So small that the windows of a few ranks stay in the nearer caches.
  static constexpr std::int64_t kWindowBytes = 256 << 10;

  /// Bytes that so many ranks need.
  static std::int64_t bytes_for(int ranks);
  /// `shared`: so many bytes, which all processes map (Group::share).
  ShmMemory(int ranks, std::shared_ptr<void> shared) : ranks_(ranks), shared_(std::move(shared)) {}

  ShmBoard& board(int rank) const;
  ShmChannel& channel(int from, int to) const;
  /// One of the two windows of a rank, [kWindowBytes] of u8.
  View window(int rank, int which) const;

 private:
  std::byte* at(std::size_t offset) const {
    return static_cast<std::byte*>(shared_.get()) + offset;
  }

  int ranks_;
  std::shared_ptr<void> shared_;
};

}  // namespace ringlet::comm
