#include "train/telemetry/trace_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <optional>
#include <utility>

#include "base/files/atomic_file.h"
#include "base/machine.h"
#include "comm/processes/secret.h"
#include "comm/report/trace_events.h"
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
  writer_->add(rank_, 1, "compute", std::move(compute_));
  writer_->add(rank_, 2, "communication", std::move(communication_));
}

void TraceWriter::add(int rank, int tid, const char* name, Tracer tracer) {
  const std::lock_guard lock(mutex_);
  auto same = std::find_if(streams_.begin(), streams_.end(), [=](const Stream& stream) {
    return stream.rank == rank && stream.tid == tid;
  });
  if (same == streams_.end()) same = streams_.insert(same, Stream{rank, tid, name});
  same->tracers.push_back(std::move(tracer));
}

std::int64_t TraceWriter::Stream::left_out() const {
  return std::accumulate(
      tracers.begin(), tracers.end(), std::int64_t{0},
      [](std::int64_t sum, const Tracer& tracer) { return sum + tracer.left_out(); });
}

std::int64_t TraceWriter::left_out() const {
  std::int64_t spans = 0;
  for (const Stream& stream : streams_) spans += stream.left_out();
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

}  // namespace

void TraceWriter::write(const std::filesystem::path& path, const TraceSource& source) const {
  std::int64_t origin_ns = now_ns();
  for (const Stream& stream : streams_) {
    for (const Tracer& tracer : stream.tracers) {
      for (const Span& span : tracer.spans()) origin_ns = std::min(origin_ns, span.begin_ns);
    }
  }
  comm::TraceEvents events(origin_ns);
  for (const Stream& stream : streams_) {
    std::int64_t end_ns = origin_ns;
    events.add_names(stream.rank, stream.tid, stream.name);
    for (const Tracer& tracer : stream.tracers) {
      for (const Span& span : tracer.spans()) {
        events.add_span(stream.rank, stream.tid, span);
        end_ns = std::max(end_ns, span.end_ns);
      }
    }
    const std::int64_t left_out = stream.left_out();
    if (left_out > 0) events.add_left_out(stream.rank, stream.tid, end_ns, left_out);
  }
  const std::string head = fmt::format(
      R"({{"displayTimeUnit":"ms","otherData":{{"run":{},"process":{},"processes":{},)"
      R"("host":{},"origin_ns":{},"clock":[{}]}},"traceEvents":[)",
      comm::to_json_text(source.run), source.process, source.processes,
      comm::to_json_text(source.host), origin_ns, fmt::join(readings_in_json(source.clock), ","));
  AtomicFile file(path);
  file.write(head);
  file.write(events.text().empty() ? "" : "\n");
  file.write(events.text());
  file.write("\n]}\n");
  file.commit();
}

void TraceWriter::write_if_possible(const std::filesystem::path& path,
                                    const TraceSource& source) const noexcept {
  try {
    write(path, source);
  } catch (const std::exception&) {
  }
}

TraceSource source_of(comm::Group& group, double timeout_seconds) {
  std::optional<std::string> drawn;
  if (group.process() == 0) drawn = comm::fingerprint(comm::new_secret());
  return {.run = group.agree("the run of a timeline", drawn, timeout_seconds),
          .process = group.process(),
          .processes = group.processes(),
          .host = host_name()};
}

}  // namespace ringlet::train
