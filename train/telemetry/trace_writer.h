// A timeline of a run in Chrome's trace format, which Perfetto and chrome://tracing open.
//
// pid = rank, tid = stream (1 compute, 2 communication), time in microseconds since the first span.
// Each process writes a timeline of its own. It says whose it is and when its first span began, so
// that trace_merge.h can make one of them:
//
//   {"displayTimeUnit":"ms","otherData":{"run":"0f...","process":1,"processes":2,"host":"b",
//    "origin_ns":N,"clock":[[at_ns,ahead_ns,within_ns],...]},"traceEvents":[
//   EVENT,
//   EVENT
//   ]}
//
// "run" is random and the same in all files of a run; "clock" has comm::ClockReading's numbers. An
// event a line (comm/report/trace_events.h).
//
// Spans are held in memory until the run ends, a hundred bytes each, and take as much in the file.
// So there is a limit. Behind it spans are only counted, and each stream's part ends with an event
// that says how many:
//
//   {"name":"the trace is full","ph":"i","s":"p","ts":T,"pid":0,"tid":1,"args":{"left_out":N}}
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/trace.h"
#include "comm/core/clock_reading.h"
#include "comm/core/group.h"
#include "kernels/device.h"

namespace ringlet::train {

/// The process that a timeline is of.
struct TraceSource {
  std::string run{};  ///< the same in all processes
  int process = 0, processes = 1;
  std::string host{};  ///< its machine's name
  /// Taken as the run began and as it ended: two clocks go at two rates. Empty: of one process.
  std::vector<comm::ClockReading> clock{};
};

class TraceWriter {
 public:
  /// Of a run of LeNet on one replica some 5,000 steps.
  static constexpr std::int64_t kUsualSpans = 500'000;

  /// `most_spans`: of all ranks of this process together; 0: no limit.
  explicit TraceWriter(std::int64_t most_spans = kUsualSpans)
      : limit_(most_spans), limited_(most_spans > 0) {}

  /// While it lives, the streams of `device` are traced as those of `rank`. A null writer traces
  /// nothing. A rank may be recorded several times, one after the other.
  class Recording {
   public:
    Recording(TraceWriter* writer, int rank, Device& device);
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

   private:
    TraceWriter* writer_;
    Device& device_;
    int rank_;
    Tracer compute_, communication_;
  };

  /// The spans of a rank's stream, as a Recording adds them when it ends.
  void add(int rank, int tid, const char* name, Tracer tracer);

  /// Writes what the ended recordings collected. Throws FileError.
  void write(const std::filesystem::path& path, const TraceSource& source = {}) const;

  /// The same after a failure, which is what is to be told: one of writing is passed over.
  void write_if_possible(const std::filesystem::path& path,
                         const TraceSource& source = {}) const noexcept;

  /// Spans that came when the trace was full.
  std::int64_t left_out() const;

 private:
  struct Stream {
    int rank;
    int tid;
    std::string name;
    std::vector<Tracer> tracers{};  // of each recording
    std::int64_t left_out() const;
  };

  SpanLimit limit_;
  bool limited_;
  std::mutex mutex_;
  std::vector<Stream> streams_;
};

/// This process of `group`, without a clock. All processes call this, also those without a trace.
/// Throws TimeoutError, Aborted.
TraceSource source_of(comm::Group& group, double timeout_seconds);

/// body(). If it throws, what `trace` has until then is written: that is what one wants to see. A
/// null trace: nothing is.
template <class Body>
auto traced(const TraceWriter* trace, const std::filesystem::path& path, const TraceSource& source,
            Body body) {
  try {
    return body();
  } catch (...) {
    if (trace != nullptr) trace->write_if_possible(path, source);
    throw;
  }
}

/// The same as a process of `group`, all of which call this; and writes at the end. Throws what
/// body() and source_of() do, and FileError.
template <class Body>
void traced(const TraceWriter* trace, const std::filesystem::path& path, comm::Group& group,
            double timeout_seconds, Body body) {
  TraceSource source = source_of(group, timeout_seconds);
  if (trace != nullptr) source.clock.push_back(group.read_clock(timeout_seconds));
  traced(trace, path, source, body);
  if (trace == nullptr) return;
  source.clock.push_back(group.read_clock(timeout_seconds));
  trace->write(path, source);
}

}  // namespace ringlet::train
