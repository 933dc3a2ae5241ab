// FlightRecorder: notes what one rank did last, so that a message can say why the others wait.
//
// Every collective gets a sequence number (1, 2, 3, ...). It is the same on every rank, since all
// ranks start the same collectives in the same order. A small ring keeps the latest ones with kind,
// bytes, name and times (to a few milliseconds, by a clock that costs next to nothing). Beside it
// stand the exchange that the rank is in, with what goes there outside of collectives, and what the
// replica does between collectives ("data loading").
//
// enter(), leave(), Moving and Exchanging are for the thread that runs the rank's collectives,
// set_activity() for any thread of the rank, the others for any thread. Only history() allocates.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/core/work_clock.h"

namespace ringlet::comm {

enum class CollectiveKind : std::uint8_t {
  none,
  all_reduce,
  reduce,
  reduce_scatter,
  broadcast,
  all_gather,
  all_to_all,
  barrier,
  activation,  ///< no collective: what goes over a cut between two stages of a model
  gradient     ///< the same on its way back
};

const char* name_of(CollectiveKind kind);

/// What must be equal on all ranks that meet in an exchange; it travels with each message.
struct CollectiveTag {
  std::int64_t sequence = 0;  ///< 0: outside of any collective
  std::int64_t bytes = 0;     ///< of the whole collective
  CollectiveKind kind = CollectiveKind::none;
  std::int32_t root = -1;  ///< of a broadcast or a reduction to one rank
  bool operator==(const CollectiveTag&) const = default;
};

/// What one message of a model in stages is; `kind` is none where it is something else.
struct MessageName {
  CollectiveKind kind = CollectiveKind::none;
  std::int32_t micro_batch = 0;
  bool is_some() const { return kind != CollectiveKind::none; }
  /// That both sides have to agree on.
  CollectiveTag tag() const {
    return {.sequence = std::int64_t{micro_batch} + 1, .bytes = 0, .kind = kind};
  }
};

/// "activation of micro-batch 3"
std::string describe(const MessageName& message);

/// Whether it is of a MessageName.
inline bool is_message(const CollectiveTag& tag) {
  return tag.kind == CollectiveKind::activation || tag.kind == CollectiveKind::gradient;
}

struct CollectiveRecord {
  CollectiveTag tag;
  std::array<char, 64> name{};  ///< cut off if longer, always ends with 0
  std::int64_t entered_ns = 0;
  std::int64_t left_ns = 0;  ///< 0: still inside
  bool inside() const { return left_ns == 0; }
};

/// "#812 all_reduce bucket 3 (fc1.weight ...)", or as a message's.
std::string describe(const CollectiveRecord& record);

/// The sides of an exchange that its rank waits for. A message that has left, or that goes on its
/// own while another one is waited for, keeps nobody.
enum class Waiting : std::uint8_t { both, to_send, to_receive };

/// What a rank sends and receives at the moment, in one step. A side that is left out is -1.
struct ExchangeRecord {
  int to = -1;
  int from = -1;
  std::int64_t out_bytes = 0;
  std::int64_t in_bytes = 0;
  std::int64_t entered_ns = 0;  ///< never 0 inside an exchange
  Waiting waiting = Waiting::both;
  MessageName out{}, in{};  ///< what they are, outside of collectives
  bool waits_to_send() const { return to >= 0 && waiting != Waiting::to_receive; }
  bool waits_to_receive() const { return from >= 0 && waiting != Waiting::to_send; }
};

/// What the replica does between collectives, and since when. `what` is null before the first.
struct Activity {
  const char* what = nullptr;
  std::int64_t since_ns = 0;
};

/// The activity of a rank that has done all that it had to: it comes to nothing any more.
inline constexpr const char* kAtItsEnd = "its end";

/// The same text, which lives until the process ends: for names of which there are few.
const char* lasting(const std::string& text);

/// A CollectiveRecord that one thread writes and any reads meanwhile. The writer never waits, and
/// uses no locked instruction: a small all-reduce feels each.
class SharedRecord {
 public:
  void enter(const CollectiveTag& tag, std::string_view name, std::int64_t now) noexcept;
  void leave(std::int64_t now) noexcept;
  /// Nothing where it changes meanwhile: for ever, if its writer's process died in that.
  std::optional<CollectiveRecord> look() const noexcept;

 private:
  /// From its construction to its end the record changes, which shows in `version_`: it is odd.
  struct Changing;
  using Word = std::uint64_t;
  static constexpr std::size_t kNameWords = sizeof(CollectiveRecord::name) / sizeof(Word);

  std::atomic<std::uint64_t> version_{0};
  std::atomic<std::int64_t> sequence_{0}, bytes_{0}, entered_ns_{0}, left_ns_{0};
  std::atomic<CollectiveKind> kind_{CollectiveKind::none};
  std::atomic<std::int32_t> root_{-1};
  std::array<std::atomic<Word>, kNameWords> name_{};
};

class FlightRecorder {
 public:
  static constexpr std::size_t kRecords = 64;

  /// `root`: where the collective has one.
  void enter(CollectiveKind kind, std::int64_t bytes, std::string_view name, int root = -1);
  void leave();
  /// Tag of the collective that this rank is in. For the thread of enter() and leave() only.
  const CollectiveTag& current() const { return current_; }

  /// Tags of what the next exchange sends and receives.
  CollectiveTag outgoing() const { return out_.is_some() ? out_.tag() : current_; }
  CollectiveTag incoming() const { return in_.is_some() ? in_.tag() : current_; }

  /// From construction to destruction exchanges are about these messages. Outside of collectives.
  class Moving {
   public:
    Moving(FlightRecorder& recorder, const MessageName& out, const MessageName& in)
        : recorder_(recorder) {
      recorder_.out_ = out;
      recorder_.in_ = in;
    }
    ~Moving() { recorder_.out_ = recorder_.in_ = {}; }
    Moving(const Moving&) = delete;
    Moving& operator=(const Moving&) = delete;

   private:
    FlightRecorder& recorder_;
  };

  /// A stay in an exchange, from construction to destruction.
  class Exchanging {
   public:
    /// Its `entered_ns` is now.
    Exchanging(FlightRecorder& recorder, const ExchangeRecord& what) : recorder_(recorder) {
      recorder_.begin_exchange(what);
    }
    ~Exchanging() { recorder_.exchange_.entered_ns.store(0, std::memory_order_relaxed); }
    Exchanging(const Exchanging&) = delete;
    Exchanging& operator=(const Exchanging&) = delete;

   private:
    FlightRecorder& recorder_;
  };
  /// Which of its sides this rank waits for from now on. At the begin it is both.
  void set_waiting(Waiting waiting) noexcept {
    exchange_.waiting.store(waiting, std::memory_order_release);
  }
  /// The exchange that this rank is in; nothing where it is in none, or just goes into another one.
  std::optional<ExchangeRecord> exchange() const;

  /// `what` is a string literal, or lives as long as the recorder (lasting()).
  void set_activity(const char* what);
  Activity activity() const;

  /// Noted by whatever works for this rank between collectives, such as the threads that read its
  /// samples. Any thread.
  WorkClock& work_clock() { return work_clock_; }
  const WorkClock& work_clock() const { return work_clock_; }

  /// The collective that was entered last.
  std::optional<CollectiveRecord> latest() const;
  /// That of this tag, where it is not too long ago.
  std::optional<CollectiveRecord> find(const CollectiveTag& tag) const;
  /// The latest collectives, at most kRecords, oldest first.
  std::vector<CollectiveRecord> history() const;

 private:
  void begin_exchange(const ExchangeRecord& what) noexcept;

  /// An ExchangeRecord that others may read while it changes, which then shows in `entered_ns`.
  struct SharedExchange {
    std::atomic<int> to{-1}, from{-1};
    std::atomic<std::int64_t> out_bytes{0}, in_bytes{0}, entered_ns{0};
    std::atomic<Waiting> waiting{Waiting::both};
    std::atomic<MessageName> out{}, in{};
  };

  CollectiveTag current_;
  MessageName out_, in_;
  SharedExchange exchange_;
  /// Soon: its writer is in this process, and between two stores.
  CollectiveRecord record(std::int64_t sequence) const {
    while (true) {
      const auto found = records_[static_cast<std::size_t>(sequence - 1) % kRecords].look();
      if (found) return *found;
      std::this_thread::yield();
    }
  }
  std::array<SharedRecord, kRecords> records_;
  std::atomic<std::int64_t> entered_{0};  // collectives so far
  std::atomic<const char*> activity_{nullptr};
  std::atomic<std::int64_t> activity_since_ns_{0};
  WorkClock work_clock_;
};

}  // namespace ringlet::comm
