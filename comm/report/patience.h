// Patience: a rank whose time-out has passed waits on while somebody works.
//
// A rank that is in no collective, and has got on with its work within the time-out, is not
// missing: it reads samples, say, or begins another pass over them. Ranks in a collective wait
// themselves, and nobody waits on beside one whose process does not answer. Where all ranks are in
// the same collective, the time-out counts from when the last one came: its message is under way.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "comm/core/time_out.h"
#include "comm/core/transport.h"
#include "comm/report/wait_cycle.h"

namespace ringlet::comm {

/// For how long `rank` waits on, of which `status` was seen at `now_ns`: until the last work of one
/// of the others, or the last one's coming where all are there, is as old as the time-out. 0:
/// nobody works.
std::chrono::nanoseconds patience_with(const StatusOfRanks& status, int rank,
                                       std::chrono::nanoseconds timeout, std::int64_t now_ns);
/// The same for the rank of `transport`, now.
std::chrono::nanoseconds patience_of(const Transport& transport);

/// Whether `peer` has ended, and never came to the collective in which the rank of `transport` is.
bool never_comes(const Transport& transport, int peer);

/// The time-out of `transport`.
inline std::chrono::nanoseconds timeout_of(const Transport& transport) {
  return nanoseconds_of(transport.timeout_seconds());
}

/// A wait cut into slices. A process that was stopped and goes on (Ctrl-Z and fg, a laptop's lid)
/// finds that much time has passed, in which nobody could come. So time counts by slices: of one in
/// which the process was stopped no more counts than of any other.
class SlicedWait {
 public:
  explicit SlicedWait(std::chrono::nanoseconds longest) : left_(longest) {}
  /// The next slice; 0 when the time has passed. The first is short: who waits for longer may look
  /// why.
  std::chrono::nanoseconds next() {
    constexpr std::chrono::milliseconds kFirst(10), kSlice(500);
    const auto slice = std::min<std::chrono::nanoseconds>(left_, is_first_ ? kFirst : kSlice);
    is_first_ = false;
    left_ -= slice;
    return slice;
  }

 private:
  std::chrono::nanoseconds left_;
  bool is_first_ = true;
};

}  // namespace ringlet::comm
