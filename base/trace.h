// Spans of time, collected per stream and written as a Chrome trace by train/.
//
// A Tracer belongs to one stream and is filled by the one thread that runs it, so adding a span
// takes no lock. A null Tracer* means that nobody traces, and costs one test of a pointer.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringlet {

/// Nanoseconds of the steady clock, the same clock for every stream of a process.
inline std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Ranks [begin, end); none where they are equal.
struct RankRange {
  int begin = 0;
  int end = 0;
};

/// What is known of a collective, of an exchange in it, or of what a rank does with others' memory,
/// beside its time. Each has some of it. Offsets are bytes from the beginning of the collective's
/// data; -1 where there is none.
struct ExchangeDetails {
  std::int64_t call = -1;  ///< number of the collective, alike on all ranks; 0: outside of any
  std::string axis{};      ///< of a mesh, which counts its own calls; empty: the world
  // Of an exchange.
  int from = -1;               ///< the rank that is received from
  std::int64_t out_at = -1;    ///< where the part begins that is sent
  std::int64_t in_at = -1;     ///< where the part begins that is received
  std::int64_t in_bytes = -1;  ///< that are received
  const char* op = nullptr;    ///< how they are combined with what is there: "copy", "add", ...
  // Of what a rank does with memory in reach.
  std::int64_t begin = -1, end = -1;  ///< what it works on
  RankRange of{};                     ///< whose memory it reads
  RankRange into{};                   ///< whose memory it writes
  // Of a collective.
  const char* type = nullptr;    ///< of its elements
  const char* reduce = nullptr;  ///< its operation: "sum", ...
  int ranks = -1;
  std::string error{};  ///< why it failed, at the rank where that began
};

struct Span {
  std::array<char, 48> name{};  ///< cut off if longer, always ends with 0
  const char* category = "";  ///< a string literal: "kernel", "layer", "collective", "exchange"...
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t bytes = -1;                   ///< bytes moved, or -1
  const ExchangeDetails* details = nullptr;  ///< the tracer has them; null: there are none
  int peer = -1;                             ///< the other rank of an exchange, or -1
  bool failed = false;                       ///< an exception ended it
};

/// How many more spans the tracers that share it may keep, from any thread.
class SpanLimit {
 public:
  explicit SpanLimit(std::int64_t spans) : left_(spans) {}
  bool take() { return left_.fetch_sub(1, std::memory_order_relaxed) > 0; }

 private:
  std::atomic<std::int64_t> left_;
};

class Tracer {
 public:
  /// `limit`: null: none. It outlives the tracer's last span.
  explicit Tracer(SpanLimit* limit = nullptr) : limit_(limit) {}
  Tracer(Tracer&&) = default;  // spans know where their details are: these do not move
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  /// Beyond the limit it only counts.
  void add(std::string_view name, const char* category, std::int64_t begin_ns, std::int64_t end_ns,
           std::int64_t bytes = -1, int peer = -1);
  /// Adds `span`; `details`: of it, or null.
  void add(const Span& span, const ExchangeDetails* details);
  const std::vector<Span>& spans() const { return spans_; }
  std::int64_t left_out() const { return left_out_; }

 private:
  SpanLimit* limit_;
  std::vector<Span> spans_;
  std::deque<ExchangeDetails> details_;
  std::int64_t left_out_ = 0;
};

/// Adds a span from its construction to its end; does nothing for a null tracer.
/// `name` must outlive the object.
class ScopedSpan {
 public:
  ScopedSpan(Tracer* tracer, std::string_view name, const char* category, std::int64_t bytes = -1,
             int peer = -1) {
    if (tracer != nullptr) begin(*tracer, name, category, bytes, peer);
  }
  ~ScopedSpan() {
    if (open_) end();
  }
  ScopedSpan(const ScopedSpan&) = delete;
  ScopedSpan& operator=(const ScopedSpan&) = delete;

  bool traces() const { return open_.has_value(); }
  /// To be filled, and only where it traces().
  ExchangeDetails& details() { return open_->details ? *open_->details : open_->details.emplace(); }

 private:
  struct Open {
    Tracer* tracer;
    std::string_view name;
    const char* category;
    std::int64_t bytes;
    int peer;
    int exceptions;  // that were on their way when it began
    std::int64_t begin_ns;
    std::optional<ExchangeDetails> details;
  };
  void begin(Tracer& tracer, std::string_view name, const char* category, std::int64_t bytes,
             int peer);
  void end();

  // Nothing of it is written where nobody traces: a short all-reduce has five of these.
  std::optional<Open> open_;
};

}  // namespace ringlet
