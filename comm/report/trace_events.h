// The text of a timeline's events in Chrome's trace format, which Perfetto draws. An event a line.
//
//   {"name":N,"cat":C,"ph":"X","ts":T,"dur":T,"pid":RANK,"tid":STREAM,"args":{...}}
//
// args, each only where it is known:
//   bytes, peer                        moved; the other rank
//   failed                             true: an exception ended it
//   call, axis                         the collective's number, alike on all ranks; 0: outside.
//                                      Each axis of a mesh counts its own
//   from, out_at, in_at, in_bytes, op  of an exchange: ExchangeDetails (base/trace.h)
//   begin, end, of, into               of what is done with others' memory; ranks are lists
//   type, reduce, ranks, error         of a collective
//
// A message is an arrow between two spans:
//
//   {"name":"message","cat":"message","ph":"s","id":"1F","ts":T,...,"args":{"message":"7.0>1.2"}}
//
// and the same with "ph":"f","bp":"e" where it arrives. "7.0>1.2" is the third message of call 7
// from rank 0 to rank 1, and "data.7.0>1.2" that of the mesh's axis "data". Both ranks count, and
// neither asks the other; where groups follow each other in a program and number their calls anew,
// both go on counting. What did not come, since the run failed, has no arrow where its receiver is
// in the same timeline; of another one nobody knows here.
//
// The id is a number made from it, since Perfetto takes hexadecimal numbers alone. A send begins
// its arrow at its begin, and a receive ends it a nanosecond before its end, so that both lie in
// their spans. Between two clocks whole timelines may have to move (train/telemetry/trace_merge.h).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/trace.h"

namespace ringlet::comm {

/// A JSON string. Texts need not be UTF-8, which JSON is: a host's name, a name that was cut off.
std::string to_json_text(const std::string& text);

/// Spans of a stream are to be added in their order, since messages are counted.
class TraceEvents {
 public:
  /// Times count from `origin_ns`.
  explicit TraceEvents(std::int64_t origin_ns) : origin_ns_(origin_ns) {}

  void add_names(int rank, int tid, std::string_view stream);
  void add_span(int rank, int tid, const Span& span);
  /// The trace was full at `at_ns`: so many spans are left out.
  void add_left_out(int rank, int tid, std::int64_t at_ns, std::int64_t spans);

  /// The events, with ",\n" between them. To be asked for when all are added.
  std::string_view text() {
    decide_open();
    return text_;
  }

 private:
  struct Thread {
    int rank;
    int tid;
  };
  /// A rank's side of messages of a call: its axis and number, from, to, whether it sends.
  using Side = std::tuple<std::string, std::int64_t, int, int, bool>;

  double microseconds(std::int64_t at_ns) const {
    return static_cast<double>(at_ns - origin_ns_) * 1e-3;
  }
  void begin_event();
  void add_args(const Span& span);
  void add_messages(const Thread& thread, const Span& span);
  struct Message {
    Thread thread;
    Side side;
    std::int64_t number, at_ns;
  };
  void add_message(const Thread& thread, const Side& side, std::int64_t at_ns, bool failed);
  void write_message(const Message& message);
  void decide_open();

  std::int64_t origin_ns_;
  std::string text_;
  std::set<int> ranks_;
  std::map<Side, std::int64_t> messages_;  // so far
  std::vector<Message> open_;  // of spans that failed: the other side says whether it came
};

}  // namespace ringlet::comm
