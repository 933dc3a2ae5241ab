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
#include <vector>

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
  bool failed = false;  ///< an exception ended it
  // As in ExchangeDetails (base/trace.h); what is not named is -1 or empty.
  std::int64_t call = -1;
  std::string axis{};
  std::int64_t from = -1, out_at = -1, in_at = -1, in_bytes = -1;
  std::string op{};
  std::int64_t begin = -1, end = -1;
  std::vector<std::int64_t> of{}, into{};  ///< ranks
  std::string type{}, reduce{};
  std::int64_t ranks = -1;
  std::string error{};
};

/// What processes and threads are called, and what is missing.
struct TraceNames {
  std::map<std::int64_t, std::string> ranks;                             ///< "rank 0"
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> streams;  ///< "compute"
  std::int64_t left_out = 0;  ///< spans that came when the trace was full
  bool lacks_calls = false;   ///< an earlier version wrote it: exchanges do not say their call
};

using TraceVisit = std::function<void(const TraceSpan&)>;

/// Calls `visit` for each span in the file's order. Throws FileError naming the file and the
/// position: not there, no JSON, no trace, an event without the fields of its kind, times that are
/// no times.
TraceNames read_trace(const std::filesystem::path& file, const TraceVisit& visit);

/// The same for the text of a file; `source` is for messages.
TraceNames parse_trace(std::string_view text, const std::string& source, const TraceVisit& visit);

}  // namespace ringlet::train
