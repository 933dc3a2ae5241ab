// Reads a timeline in Chrome's trace format, span by span, in the memory of one span. A trace of a
// long run is too large to be held as a whole.
//
// Taken are complete events ("ph":"X") and the names of processes and threads, as TraceWriter
// writes them and other programs too, and how many spans it left out; events of other kinds are
// passed over.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace ringlet::train {

struct TraceSpan {
  std::string name;
  std::string category;
  double begin_us = 0;
  double duration_us = 0;
  std::int64_t rank = 0;    ///< pid
  std::int64_t stream = 0;  ///< tid: 1 compute, 2 communication
  std::int64_t bytes = -1;  ///< -1: none are named
  std::int64_t peer = -1;
};

/// What processes and threads are called, and what is missing.
struct TraceNames {
  std::map<std::int64_t, std::string> ranks;                             ///< "rank 0"
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> streams;  ///< "compute"
  std::int64_t left_out = 0;  ///< spans that came when the trace was full
};

using TraceVisit = std::function<void(const TraceSpan&)>;

/// Calls `visit` for each span in the file's order. Throws FileError naming the file and the
/// position: not there, no JSON, no trace, an event without the fields of its kind, times that are
/// no times.
TraceNames read_trace(const std::filesystem::path& file, const TraceVisit& visit);

/// The same for the text of a file; `source` is for messages.
TraceNames parse_trace(std::string_view text, const std::string& source, const TraceVisit& visit);

}  // namespace ringlet::train
