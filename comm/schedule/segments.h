// Segments: a value for each address, the same one over whole stretches of them.
#pragma once

#include <cstdint>
#include <limits>
#include <map>

#include "comm/schedule/schedule.h"

namespace ringlet::comm {

template <class Value>
class Segments {
 public:
  explicit Segments(const Value& everywhere = {}) {
    segments_.emplace(std::numeric_limits<std::int64_t>::min(), everywhere);
  }

  /// visit(Range, Value&) for each stretch in `range`, in the order of addresses; the value may be
  /// changed.
  template <class Visit>
  void visit(const Range& range, Visit visit) {
    if (range.bytes <= 0) return;
    auto segment = cut_at(range.begin);
    const auto end = cut_at(range.end());
    while (segment != end) {
      const auto next = std::next(segment);
      visit(Range{segment->first, next->first - segment->first}, segment->second);
      segment = next;
    }
  }

 private:
  using Map = std::map<std::int64_t, Value>;

  /// The segment that begins at `address`, from here on.
  typename Map::iterator cut_at(std::int64_t address) {
    const auto after = segments_.upper_bound(address);
    const auto at = std::prev(after);
    return at->first == address ? at : segments_.emplace_hint(after, address, at->second);
  }

  Map segments_;  // by where they begin; each ends where the next begins
};

}  // namespace ringlet::comm
