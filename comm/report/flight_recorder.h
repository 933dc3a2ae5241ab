// FlightRecorder: notes what one rank did last, so that a message can say why the others wait.
//
// Every collective gets a sequence number (1, 2, 3, ...). It is the same on every rank, since all
// ranks start the same collectives in the same order. A small ring keeps the latest ones with kind,
// bytes, name and times (to a few milliseconds, by a clock that costs next to nothing). Beside it
// stands what the replica does between collectives ("data loading").
//
// enter() and leave() are for the thread that runs the rank's collectives, set_activity() for any
// thread of the rank, the others for any thread. Only history() allocates.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace ringlet::comm {

enum class CollectiveKind : std::uint8_t {
  none,
  all_reduce,
  reduce,
  reduce_scatter,
  broadcast,
  all_gather,
  all_to_all,
  barrier
};

const char* name_of(CollectiveKind kind);

/// What must be equal on all ranks that meet in an exchange; it travels with each message.
struct CollectiveTag {
  std::int64_t sequence = 0;  ///< 0: outside of any collective
  std::int64_t bytes = 0;     ///< of the whole collective
  CollectiveKind kind = CollectiveKind::none;
  bool operator==(const CollectiveTag&) const = default;
};

struct CollectiveRecord {
  CollectiveTag tag;
  std::array<char, 64> name{};  ///< cut off if longer, always ends with 0
  std::int64_t entered_ns = 0;
  std::int64_t left_ns = 0;  ///< 0: still inside
  bool inside() const { return left_ns == 0; }
};

/// "#812 all_reduce bucket 3 (fc1.weight ...)"
std::string describe(const CollectiveRecord& record);

/// What the replica does between collectives, and since when. `what` is null before the first.
struct Activity {
  const char* what = nullptr;
  std::int64_t since_ns = 0;
};

/// A lock for a few stores that is hardly ever contended. (A std::mutex costs more than a small
/// all-reduce can spare.)
class SpinLock {
 public:
  void lock() noexcept {
    while (taken_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() noexcept { taken_.clear(std::memory_order_release); }

 private:
  std::atomic_flag taken_;
};

class FlightRecorder {
 public:
  static constexpr std::size_t kRecords = 64;

  void enter(CollectiveKind kind, std::int64_t bytes, std::string_view name);
  void leave();
  /// Tag of the collective that this rank is in. For the thread of enter() and leave() only.
  const CollectiveTag& current() const { return current_; }

  /// `what` is a string literal, or lives as long as the recorder.
  void set_activity(const char* what);
  Activity activity() const;

  /// The collective that was entered last.
  std::optional<CollectiveRecord> latest() const;
  /// The latest collectives, at most kRecords, oldest first.
  std::vector<CollectiveRecord> history() const;

 private:
  CollectiveTag current_;
  mutable SpinLock lock_;  // guards records_ and entered_
  std::array<CollectiveRecord, kRecords> records_;
  std::int64_t entered_ =
      0;  // collectives so far; the latest is records_[(entered_ - 1) % kRecords]
  std::atomic<const char*> activity_{nullptr};
  std::atomic<std::int64_t> activity_since_ns_{0};
};

}  // namespace ringlet::comm
