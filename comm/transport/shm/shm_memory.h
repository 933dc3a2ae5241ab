// ShmMemory: one piece of memory that all processes of a run map, and what lies in it.
//
//   board     one a rank      its doorbell, and how far it has come (ShmPeerAccess)
//   window    two a rank      what a rank shows the others, written by it alone
//   channel   one a pair      messages from one rank to another, in slots that are used in turn
//
// The memory has no name in any file system (memfd_create): there is no file to leave behind,
// /dev/shm and its size, which containers make small, play no part, and it is gone with the last
// process that maps it. Process 0 makes it; the others open it as /proc/PID/fd/N, which the kernel
// grants to processes of the same user. Pages that nobody touches take no memory.
//
// Everything that ranks wait for is an atomic that is lock-free, so it works between processes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "comm/report/flight_recorder.h"
#include "comm/transport/doorbell.h"
#include "comm/transport/shm/shm_heap.h"
#include "kernels/tensor.h"

namespace ringlet::comm {

/// What a rank shows the others. Sessions are numbered 1, 2, 3, ...; all ranks open the same ones.
struct ShmBoard {
  Doorbell doorbell;
  int pid = 0;  ///< of the rank's process, set before its first session
  /// A rank comes to session n + 2 only when everybody has come to n + 1 and has therefore read
  /// what was shown in n: two of these are enough.
  struct alignas(64) Shown {
    std::atomic<std::uint64_t> session{0};  ///< written last
    std::int64_t bytes = 0;
    CollectiveTag tag;
    ShmPlace place;  ///< not in reach: what is shown is a window, or nothing
  };
  std::array<Shown, 2> shown;
};

/// Messages from one rank to another. A message is as many pieces as its bytes need, at least one;
/// its first piece says what it is. Piece k lies in slot k % kSlots.
struct ShmChannel {
  static constexpr std::uint64_t kSlots = 4;
  static constexpr std::int64_t kSlotBytes = 64 << 10;

  struct Slot {
    std::int64_t message_bytes = 0;
    CollectiveTag tag;
    alignas(64) std::array<std::byte, kSlotBytes> data;
  };
  alignas(64) std::atomic<std::uint64_t> sent{0};   ///< pieces, by the sender
  alignas(64) std::atomic<std::uint64_t> taken{0};  ///< pieces, by the receiver
  std::array<Slot, kSlots> slots;

  Slot& slot(std::uint64_t piece) { return slots[static_cast<std::size_t>(piece % kSlots)]; }
};

class ShmMemory {
 public:
  /// So small that the windows of a few ranks stay in the nearer caches.
  static constexpr std::int64_t kWindowBytes = 256 << 10;

  /// New memory for so many ranks. Throws CommError.
  static ShmMemory make(int ranks);
  /// Maps the memory that another process's address() names. Throws CommError, also for another
  /// size.
  static ShmMemory open(int ranks, const std::string& address);
  ~ShmMemory();
  ShmMemory(ShmMemory&& other) noexcept;
  ShmMemory& operator=(ShmMemory&&) = delete;

  /// The path by which other processes open the memory, as long as this object lives.
  std::string address() const;

  ShmBoard& board(int rank) const;
  ShmChannel& channel(int from, int to) const;
  /// One of the two windows of a rank, [kWindowBytes] of u8.
  View window(int rank, int which) const;

 private:
  ShmMemory(int ranks, int descriptor);
  void map();

  int ranks_;
  int descriptor_;
  std::byte* memory_ = nullptr;
};

}  // namespace ringlet::comm
