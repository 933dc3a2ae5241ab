// Calls: the all-reduces of a trace, and what each rank did in them, as the spans say.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/telemetry/trace_reader.h"

namespace ringlet::app::replay {

/// Of one call on one rank.
struct TracedRank {
  std::optional<train::TraceSpan> whole{};  ///< nothing where it failed before it came here
  std::vector<train::TraceSpan> steps{};    ///< exchanges, meetings and touches, in their order
};

/// A collective that reduces, on all ranks.
struct TracedCall {
  std::string file{};  ///< the trace's name
  std::string name{};
  std::int64_t number = 0;  ///< ExchangeDetails::call (base/trace.h)
  std::int64_t bytes = 0;   ///< of each rank's data
  std::string type{}, op{};
  std::vector<TracedRank> ranks{};
  /// Of a call of some of the world's ranks, their ranks there; empty: it is of all.
  std::vector<std::int64_t> members{};
  double begin_us = 0, end_us = 0;  ///< of the first rank that came, and the last that went
  bool failed = false;

  int size() const { return static_cast<int>(ranks.size()); }
  /// "call 7, 'bucket 0'", "call 7, 'bucket 0' of the world's ranks 2, 3"
  std::string text() const;
  /// "trace.json: call 7, 'bucket 0'", for messages
  std::string where() const { return file + ": " + text(); }
};

/// A rank computed gradients, from the last layer to the first.
struct Backward {
  std::int64_t rank = 0;
  double begin_us = 0, end_us = 0;
};

struct TracedRun {
  std::vector<TracedCall> calls{};   ///< in the order of the run
  std::vector<Backward> backward{};  ///< rank after rank
  std::int64_t left_out = 0;         ///< calls that are not whole, since the trace was full
};

/// The most ranks that are replayed.
inline constexpr int kMostRanks = 64;

/// Throws FileError naming the file: as read_trace() does; too long; written by an earlier version;
/// no call in it, or one of too many ranks or not of all; times that run backwards.
TracedRun read_calls(const std::filesystem::path& file);

}  // namespace ringlet::app::replay
