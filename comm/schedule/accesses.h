// What a touch reads and writes (schedule.h).
#pragma once

#include <span>
#include <vector>

#include "comm/schedule/schedule.h"

namespace ringlet::comm {

/// Each of `writes` becomes all of `reads` together, or the only one; all have the same length.
struct Accesses {
  std::vector<Range> reads{};  ///< in the order of ranks where it reduces
  std::vector<Range> writes{};
};

/// `shown` by each rank at the latest meeting at which they did. Throws ContractError where they
/// have shown nothing, or less than is touched.
Accesses accesses_of(const Touch& touch, int rank, std::span<const Range> shown);

/// Keeps what each rank has shown last, for a visitor of a walk.
class ShownRanges {
 public:
  explicit ShownRanges(const Schedule& schedule)
      : schedule_(schedule), ranges_(schedule.ranks.size()) {}
  /// All ranks are at their meetings of `walk`.
  template <class Walk>
  void note(const Walk& walk) {
    for (int rank = 0; rank < schedule_.size(); ++rank) {
      const std::int32_t shown = walk.step(rank).to;
      if (shown == kNobody) continue;
      ranges_[static_cast<std::size_t>(rank)] =
          schedule_.of(rank).shown[static_cast<std::size_t>(shown)];
    }
  }
  std::span<const Range> all() const { return ranges_; }

 private:
  const Schedule& schedule_;
  std::vector<Range> ranges_;
};

}  // namespace ringlet::comm
