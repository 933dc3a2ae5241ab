#include "train/telemetry/trace_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>

#include "base/files/atomic_file.h"
#include "base/files/input_file.h"
#include "base/files/json_text.h"

namespace ringlet::train {
namespace {

using nlohmann::json;

/// One event while its fields come in.
struct TraceEvent {
  std::string phase;
  std::string title;  // "args":{"name":..}: what a process or thread is called
  std::optional<std::string> name;
  std::optional<double> begin_us, duration_us;
  std::optional<std::int64_t> pid, tid;
  std::int64_t left_out = 0;
  TraceSpan span;
};

/// Takes the JSON as it comes by, without building a tree of it.
///   {"traceEvents": [ {field: value, "args": {field: value}}, ...], ...}
///   depth 1          2 3                     4
class Handler final : public nlohmann::json_sax<json> {
 public:
  Handler(const std::string& source, const TraceVisit& visit) : source_(source), visit_(visit) {}

  TraceNames finish() {
    if (!found_events_) fail("there are no traceEvents; this is no trace");
    return std::move(names_);
  }

  bool null() override { return true; }
  bool boolean(bool value) override {
    if (is_arg() && key_ == "failed") event_.span.failed = value;
    return true;
  }
  bool binary(json::binary_t&) override { return true; }
  bool number_integer(json::number_integer_t value) override { return whole(value); }
  bool number_unsigned(json::number_unsigned_t value) override {
    constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return value <= kMax ? whole(static_cast<std::int64_t>(value))
                         : number(static_cast<double>(value));
  }
  bool number_float(json::number_float_t value, const std::string&) override {
    return number(value);
  }

  bool string(std::string& text) override {
    if (is_arg()) {
      text_of_args(std::move(text));
    } else if (depth_ == kInEvent && in_events_) {
      text_of_event(std::move(text));
    }
    return true;
  }

  bool key(std::string& name) override {
    key_ = std::move(name);
    return true;
  }

  bool start_object(std::size_t) override {
    if (depth_ == kInEvent && in_events_) in_args_ = key_ == "args";
    if (depth_ == kInList && in_events_) event_ = TraceEvent();
    return enter();
  }

  bool end_object() override {
    if (depth_ == kInEvent && in_events_) end_event();
    --depth_;
    return true;
  }

  bool start_array(std::size_t) override {
    if (depth_ == 0) fail("is a list, not an object with traceEvents; this is no trace of Ringlet");
    if (depth_ == kInRoot) {
      in_events_ = key_ == "traceEvents";
      found_events_ = found_events_ || in_events_;
    }
    if (depth_ == kInEvent) in_args_ = false;
    list_ = is_arg() ? ranks_of(event_.span, key_) : nullptr;
    return enter();
  }

  bool end_array() override {
    --depth_;
    list_ = nullptr;
    if (depth_ == kInRoot) in_events_ = false;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const json::exception& error) override {
    throw FileError(fmt::format("{}: event {}: not valid JSON ({}); the file is damaged", source_,
                                events_ + 1, on_one_line(error.what(), kShown)));
  }

 private:
  static constexpr int kInRoot = 1, kInList = 2, kInEvent = 3, kInArgs = 4;
  static constexpr int kMaxDepth = 16;
  static constexpr std::size_t kShown = 400;  // bytes of what a message quotes

  [[noreturn]] void fail(const std::string& what) const { throw FileError(source_ + ": " + what); }
  [[noreturn]] void fail_event(const char* field, const char* why) const {
    fail(fmt::format("event {} '{}': '{}' {}; the file is damaged", events_ + 1,
                     on_one_line(event_.name.value_or(""), kShown), field, why));
  }

  bool enter() {
    if (++depth_ > kMaxDepth) {
      fail(
          fmt::format("event {}: nested deeper than {}; this is no trace", events_ + 1, kMaxDepth));
    }
    return true;
  }

  bool is_arg() const { return in_events_ && in_args_ && depth_ == kInArgs; }

  /// Where the numbers of that field go; null for another one.
  template <class Target, std::size_t Count>
  static Target* target_of(TraceSpan& span, const std::string& key,
                           const std::pair<const char*, Target TraceSpan::*> (&fields)[Count]) {
    for (const auto& [name, field] : fields) {
      if (key == name) return &(span.*field);
    }
    return nullptr;
  }
  static std::int64_t* number_of(TraceSpan& span, const std::string& key) {
    using Field = std::pair<const char*, std::int64_t TraceSpan::*>;
    static constexpr Field kFields[] = {
        {"bytes", &TraceSpan::bytes},   {"peer", &TraceSpan::peer},
        {"call", &TraceSpan::call},     {"from", &TraceSpan::from},
        {"out_at", &TraceSpan::out_at}, {"in_at", &TraceSpan::in_at},
        {"begin", &TraceSpan::begin},   {"end", &TraceSpan::end},
        {"ranks", &TraceSpan::ranks},   {"in_bytes", &TraceSpan::in_bytes}};
    return target_of(span, key, kFields);
  }
  static std::vector<std::int64_t>* ranks_of(TraceSpan& span, const std::string& key) {
    using Field = std::pair<const char*, std::vector<std::int64_t> TraceSpan::*>;
    static constexpr Field kFields[] = {{"of", &TraceSpan::of}, {"into", &TraceSpan::into}};
    return target_of(span, key, kFields);
  }

  void text_of_args(std::string text) {
    using Field = std::pair<const char*, std::string TraceSpan::*>;
    static constexpr Field kFields[] = {{"op", &TraceSpan::op},
                                        {"axis", &TraceSpan::axis},
                                        {"type", &TraceSpan::type},
                                        {"reduce", &TraceSpan::reduce},
                                        {"error", &TraceSpan::error}};
    if (key_ == "name") {
      event_.title = std::move(text);
    } else if (std::string* const target = target_of(event_.span, key_, kFields)) {
      *target = std::move(text);
    }
  }

  void text_of_event(std::string text) {
    if (key_ == "ph") {
      event_.phase = std::move(text);
    } else if (key_ == "name") {
      event_.name = std::move(text);
    } else if (key_ == "cat") {
      event_.span.category = std::move(text);
    }
  }

  bool whole(std::int64_t value) {
    if (!in_events_) return true;
    if (depth_ == kInEvent && key_ == "pid") event_.pid = value;
    if (depth_ == kInEvent && key_ == "tid") event_.tid = value;
    constexpr std::size_t kMostRanks = 1 << 16;
    if (list_ != nullptr && list_->size() < kMostRanks) list_->push_back(value);
    if (is_arg()) {
      if (std::int64_t* const target = number_of(event_.span, key_)) *target = value;
      if (key_ == "left_out") event_.left_out = value;
    }
    return number(static_cast<double>(value));
  }

  bool number(double value) {
    if (!in_events_ || depth_ != kInEvent) return true;
    if (key_ == "ts") event_.begin_us = value;
    if (key_ == "dur") event_.duration_us = value;
    return true;
  }

  void end_event() {
    if (event_.phase == "X") end_span();
    if (event_.phase == "M") end_name();
    if (event_.phase == "i") end_note();
    ++events_;
  }

  void end_span() {
    if (!event_.name) fail_event("name", "is missing");
    if (!event_.begin_us) fail_event("ts", "is missing or not a number");
    if (!event_.duration_us) fail_event("dur", "is missing or not a number");
    if (*event_.duration_us < 0) fail_event("dur", "is negative");
    TraceSpan& span = event_.span;
    span.name = std::move(*event_.name);
    span.begin_us = *event_.begin_us;
    span.duration_us = *event_.duration_us;
    span.rank = event_.pid.value_or(0);
    span.stream = event_.tid.value_or(0);
    const bool is_exchange = span.category == "exchange";
    names_.lacks_calls = names_.lacks_calls || (is_exchange && span.call < 0);
    visit_(span);
  }

  void end_note() {
    constexpr std::int64_t kMost = std::int64_t{1} << 60;  // no sum of a few overflows
    names_.left_out =
        std::min(kMost, names_.left_out + std::clamp(event_.left_out, std::int64_t{0}, kMost));
  }

  void end_name() {
    const std::int64_t rank = event_.pid.value_or(0);
    if (event_.name == "process_name") names_.ranks[rank] = event_.title;
    if (event_.name == "thread_name") {
      names_.streams[{rank, event_.tid.value_or(0)}] = event_.title;
    }
  }

  const std::string& source_;
  const TraceVisit& visit_;
  TraceNames names_;
  TraceEvent event_;
  std::string key_;
  std::vector<std::int64_t>* list_ = nullptr;  // where the numbers of a list go; null: another
  std::int64_t events_ = 0;                    // that ended
  int depth_ = 0;
  bool in_events_ = false, in_args_ = false, found_events_ = false;
};

/// Only of streams: for another kind of input the compiler would make the library's parser again.
TraceNames parse(std::istream& stream, const std::string& source, const TraceVisit& visit) {
  Handler handler(source, visit);
  json::sax_parse(stream, &handler);
  return handler.finish();
}

}  // namespace

TraceNames read_trace(const std::filesystem::path& file, const TraceVisit& visit) {
  std::ifstream stream = open_input(file);
  return parse(stream, file.string(), visit);
}

TraceNames parse_trace(std::string_view text, const std::string& source, const TraceVisit& visit) {
  std::istringstream stream{std::string(text)};
  return parse(stream, source, visit);
}

}  // namespace ringlet::train
