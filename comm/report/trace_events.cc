#include "comm/report/trace_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/hash.h"

namespace ringlet::comm {

namespace {

/// The fields of "args", one after the other.
class Args {
 public:
  explicit Args(std::string& out) : out_(out) {}
  ~Args() {
    if (any_) out_.push_back('}');
  }
  Args(const Args&) = delete;
  Args& operator=(const Args&) = delete;

  void number(const char* key, std::int64_t value) {
    if (value >= 0) add(key, fmt::format("{}", value));
  }
  void word(const char* key, const char* value) {
    if (value != nullptr) add(key, fmt::format("\"{}\"", value));
  }
  void text(const char* key, const std::string& value) {
    if (!value.empty()) add(key, to_json_text(value));
  }
  void truth(const char* key, bool value) {
    if (value) add(key, "true");
  }
  void ranks(const char* key, const RankRange& range) {
    if (range.begin >= range.end) return;
    std::string list;
    for (int rank = range.begin; rank < range.end; ++rank) {
      list += fmt::format("{}{}", list.empty() ? "" : ",", rank);
    }
    add(key, "[" + list + "]");
  }

 private:
  void add(const char* key, std::string_view value) {
    out_ += fmt::format(R"({}"{}":{})", any_ ? "," : R"(,"args":{)", key, value);
    any_ = true;
  }

  std::string& out_;
  bool any_ = false;
};

}  // namespace

std::string to_json_text(const std::string& text) {
  using nlohmann::json;
  return json(text).dump(-1, ' ', true, json::error_handler_t::replace);
}

void TraceEvents::begin_event() {
  constexpr std::string_view kBetween = ",\n";
  if (!text_.empty()) text_ += kBetween;
}

void TraceEvents::add_names(int rank, int tid, std::string_view stream) {
  begin_event();
  text_ +=
      fmt::format(R"({{"name":"process_name","ph":"M","pid":{},"args":{{"name":"rank {}"}}}},)"
                  "\n"
                  R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":"{}"}}}})",
                  rank, rank, rank, tid, stream);
}

void TraceEvents::add_span(int rank, int tid, const Span& span) {
  ranks_.insert(rank);
  begin_event();
  text_ +=
      fmt::format(R"({{"name":{},"cat":"{}","ph":"X","ts":{:.3f},"dur":{:.3f},"pid":{},"tid":{})",
                  to_json_text(span.name.data()), span.category, microseconds(span.begin_ns),
                  static_cast<double>(span.end_ns - span.begin_ns) * 1e-3, rank, tid);
  add_args(span);
  text_.push_back('}');
  add_messages({rank, tid}, span);
}

void TraceEvents::add_args(const Span& span) {
  Args args(text_);
  args.number("bytes", span.bytes);
  args.number("peer", span.peer);
  args.truth("failed", span.failed);
  if (span.details == nullptr) return;
  const ExchangeDetails& details = *span.details;
  args.number("call", details.call);
  args.text("axis", details.axis);
  args.number("from", details.from);
  args.number("out_at", details.out_at);
  args.number("in_at", details.in_at);
  args.number("in_bytes", details.in_bytes);
  args.word("op", details.op);
  args.number("begin", details.begin);
  args.number("end", details.end);
  args.ranks("of", details.of);
  args.ranks("into", details.into);
  args.word("type", details.type);
  args.word("reduce", details.reduce);
  args.number("ranks", details.ranks);
  args.text("error", details.error);
}

/// An exchange says what it receives; what has a peer beside that, it sends.
void TraceEvents::add_messages(const Thread& thread, const Span& span) {
  const ExchangeDetails* const details = span.details;
  if (details == nullptr || details->call < 0 || details->of.end > 0) return;
  const bool receives = details->in_bytes >= 0,
             only = std::string_view(span.name.data()) == "receive";
  if (span.peer >= 0 && !only) {
    add_message(thread, {details->axis, details->call, thread.rank, span.peer, true}, span.begin_ns,
                span.failed);
  }
  if (receives) {
    add_message(thread, {details->axis, details->call, details->from, thread.rank, false},
                std::max(span.begin_ns, span.end_ns - 1), span.failed);
  }
}

void TraceEvents::add_message(const Thread& thread, const Side& side, std::int64_t at_ns,
                              bool failed) {
  const Message message{thread, side, messages_[side]++, at_ns};
  if (failed) {
    open_.push_back(message);
  } else {
    write_message(message);
  }
}

void TraceEvents::decide_open() {
  const std::vector<Message> open = std::exchange(open_, {});
  for (const Message& message : open) {
    const auto& [axis, call, from, to, sends] = message.side;
    const Side other{axis, call, from, to, !sends};
    const bool is_open = std::any_of(open.begin(), open.end(), [&](const Message& one) {
      return one.side == other && one.number == message.number;
    });
    const bool came = !is_open && messages_[other] > message.number;
    if (came || (sends && !ranks_.contains(to))) write_message(message);
  }
}

void TraceEvents::write_message(const Message& message) {
  const auto& [axis, call, from, to, sends] = message.side;
  const std::string name =
      fmt::format("{}{}{}.{}>{}.{}", axis, axis.empty() ? "" : ".", call, from, to, message.number);
  begin_event();
  text_ += fmt::format(R"({{"name":"message","cat":"message","ph":"{}",{}"id":"{:X}","ts":{:.3f},)"
                       R"("pid":{},"tid":{},"args":{{"message":{}}}}})",
                       sends ? "s" : "f", sends ? "" : R"("bp":"e",)",
                       hash_bytes(name.data(), name.size()), microseconds(message.at_ns),
                       message.thread.rank, message.thread.tid, to_json_text(name));
}

void TraceEvents::add_left_out(int rank, int tid, std::int64_t at_ns, std::int64_t spans) {
  begin_event();
  text_ += fmt::format(R"({{"name":"the trace is full","ph":"i","s":"p","ts":{:.3f},"pid":{},)"
                       R"("tid":{},"args":{{"left_out":{}}}}})",
                       microseconds(at_ns), rank, tid, spans);
}

}  // namespace ringlet::comm
