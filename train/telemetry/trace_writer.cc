#include "train/telemetry/trace_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/files/atomic_file.h"
#include "train/reports/failure.h"

namespace ringlet::train {

TraceWriter::Recording::Recording(TraceWriter* writer, int rank, Device& device)
    : writer_(writer),
      device_(device),
      rank_(rank),
      compute_(writer != nullptr && writer->limited_ ? &writer->limit_ : nullptr),
      communication_(writer != nullptr && writer->limited_ ? &writer->limit_ : nullptr) {
  if (writer_ == nullptr) return;
  device_.compute().set_tracer(&compute_);
  device_.communication().set_tracer(&communication_);
}

TraceWriter::Recording::~Recording() {
  if (writer_ == nullptr) return;
  drain(device_.communication());
  device_.compute().set_tracer(nullptr);
  device_.communication().set_tracer(nullptr);
  writer_->add(rank_, 1, "compute", compute_);
  writer_->add(rank_, 2, "communication", communication_);
}

void TraceWriter::add(int rank, int tid, const char* name, const Tracer& tracer) {
  const std::lock_guard lock(mutex_);
  auto same = std::find_if(streams_.begin(), streams_.end(), [=](const Stream& stream) {
    return stream.rank == rank && stream.tid == tid;
  });
  if (same == streams_.end()) same = streams_.insert(same, {rank, tid, name});
  same->spans.insert(same->spans.end(), tracer.spans().begin(), tracer.spans().end());
  same->left_out += tracer.left_out();
}

std::int64_t TraceWriter::left_out() const {
  std::int64_t spans = 0;
  for (const Stream& stream : streams_) spans += stream.left_out;
  return spans;
}

namespace {

std::vector<std::string> readings_in_json(const std::vector<comm::ClockReading>& readings) {
  std::vector<std::string> texts;
  for (const auto& [at, ahead, within] : readings) {
    texts.push_back(fmt::format("[{},{},{}]", at, ahead, within));
  }
  return texts;
}

/// A host's name need not be UTF-8, which JSON is, nor need a layer's that was cut off.
std::string to_json_text(const std::string& text) {
  using nlohmann::json;
  return json(text).dump(-1, ' ', true, json::error_handler_t::replace);
}

void append(fmt::memory_buffer& out, const Span& span, int rank, int tid, std::int64_t origin_ns) {
  fmt::format_to(std::back_inserter(out),
                 R"({{"name":{},"cat":"{}","ph":"X","ts":{:.3f},"dur":{:.3f},"pid":{},"tid":{})",
                 to_json_text(span.name.data()), span.category,
                 static_cast<double>(span.begin_ns - origin_ns) * 1e-3,
                 static_cast<double>(span.end_ns - span.begin_ns) * 1e-3, rank, tid);
  const char* separator = R"(,"args":{)";
  for (const auto& [key, value] : {std::pair<const char*, std::int64_t>{"bytes", span.bytes},
                                   {"peer", span.peer},
                                   {"from", span.details.from},
                                   {"out_at", span.details.out_at},
                                   {"in_at", span.details.in_at}}) {
    if (value < 0) continue;
    fmt::format_to(std::back_inserter(out), R"({}"{}":{})", separator, key, value);
    separator = ",";
  }
  if (*separator == ',' && separator[1] == '\0') out.push_back('}');
  out.push_back('}');
}

}  // namespace

void TraceWriter::write(const std::filesystem::path& path, const TraceSource& source) const {
  std::int64_t origin_ns = now_ns();
  for (const Stream& stream : streams_) {
    for (const Span& span : stream.spans) origin_ns = std::min(origin_ns, span.begin_ns);
  }
  fmt::memory_buffer out;
  const auto text = std::back_inserter(out);
  fmt::format_to(text,
                 R"({{"displayTimeUnit":"ms","otherData":{{"process":{},"host":{},"origin_ns":{},)",
                 source.process, to_json_text(source.host), origin_ns);
  fmt::format_to(text, R"("clock":[{}]}},"traceEvents":[)",
                 fmt::join(readings_in_json(source.clock), ","));
  const char* separator = "\n";
  for (const Stream& stream : streams_) {
    double end = 0;
    fmt::format_to(text,
                   R"({}{{"name":"process_name","ph":"M","pid":{},"args":{{"name":"rank {}"}}}},)"
                   "\n"
                   R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":"{}"}}}})",
                   separator, stream.rank, stream.rank, stream.rank, stream.tid, stream.name);
    separator = ",\n";
    for (const Span& span : stream.spans) {
      fmt::format_to(text, ",\n");
      append(out, span, stream.rank, stream.tid, origin_ns);
      end = std::max(end, static_cast<double>(span.end_ns - origin_ns) * 1e-3);
    }
    if (stream.left_out == 0) continue;
    fmt::format_to(text,
                   R"(,{}{{"name":"the trace is full","ph":"i","s":"p","ts":{:.3f},"pid":{},)"
                   R"("tid":{},"args":{{"left_out":{}}}}})",
                   "\n", end, stream.rank, stream.tid, stream.left_out);
  }
  fmt::format_to(text, "\n]}}\n");
  write_file_atomically(path, {out.data(), out.size()});
}

}  // namespace ringlet::train
