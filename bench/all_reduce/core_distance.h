// How far apart the processors are that two ranks run on.
//
// On one chip a cache line comes from another core through the last cache that both share; on
// another chip (or another corner of a virtual machine's host, which may move a virtual core from
// one minute to the next) it crosses a link between them. An all-reduce of few bytes is little else
// than such trips, so no figure of one means anything without it.
#pragma once

#include <optional>

namespace ringlet::bench {

struct CoreDistance {
  double nanoseconds = 0;  ///< for a cache line to get from one to the other

  /// Within one cache a trip takes 15 to 60 ns on the processors of the last ten years, between
  /// chips or sockets 85 and more; the same machine gave 25 and 156, and nothing between.
  static constexpr double kNearBelow = 75;
  bool near() const { return nanoseconds < kNearBelow; }
  const char* word() const { return near() ? "near" : "far"; }
};

/// Two threads hand a cache line to and fro, on two processors that the system has chosen for them
/// (ranks are not pinned, either; but where other programs leave them only one between them, the
/// second goes to another). Of some hundred batches the quickest counts, since other programs may
/// have kept one of the two waiting in the rest. Takes some milliseconds, half a second at most.
/// Nothing where there is only one processor, or no batch ran undisturbed.
std::optional<CoreDistance> measure_core_distance();

}  // namespace ringlet::bench
