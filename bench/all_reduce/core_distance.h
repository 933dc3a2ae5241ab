// How far apart the processors are that two ranks run on.
//
// On one chip a cache line comes from another core through the last-level cache that both share. On
// another chip it crosses a link between them. (So it does in another corner of a virtual machine's
// host, and the host may move a virtual core from one minute to the next.) An all-reduce of few
// bytes is little else than such trips, so its time means nothing without this distance.
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

/// Two threads hand a cache line to and fro, on two processors that the system has chosen for them,
/// as it does for ranks that are not pinned. Where other programs leave only one processor for
/// both, the second thread goes to another one. Of some hundred batches the quickest counts: in the
/// others one of the two may have been kept waiting. Takes some milliseconds, half a second at
/// most. Nothing where there is only one processor, or no batch ran undisturbed.
std::optional<CoreDistance> measure_core_distance();

}  // namespace ringlet::bench
