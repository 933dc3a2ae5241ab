#include "comm/schedule/schedule.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace ringlet::comm {

std::uint16_t Schedule::number_of(std::int64_t bytes) {
  const auto known = std::find(lengths.begin(), lengths.end(), bytes);
  const auto number = static_cast<std::size_t>(known - lengths.begin());
  if (known == lengths.end()) {
    require(number <= std::numeric_limits<std::uint16_t>::max(), "Schedule",
            "messages have at most 65,536 different lengths");
    lengths.push_back(bytes);
  }
  return static_cast<std::uint16_t>(number);
}

bool Schedule::has_addresses() const {
  return std::all_of(ranks.begin(), ranks.end(), [](const RankSchedule& rank) {
    return rank.addresses.size() == rank.steps.size();
  });
}

std::int64_t moved_bytes(const Touch& touch, int rank, int ranks) {
  const std::int64_t others = ranks - 1, bytes = touch.mine.bytes;
  switch (touch.kind) {
    case Touch::Kind::use:
      return 0;
    case Touch::Kind::copy:
    case Touch::Kind::read:
      return bytes;
    case Touch::Kind::reduce_into:
    case Touch::Kind::reduce_part:
    case Touch::Kind::spread:
      return others * bytes;
    case Touch::Kind::reduce_to:
      return (touch.of == rank ? others : others + 1) * bytes;
    case Touch::Kind::reduce_for_all:
      return 2 * others * bytes;
  }
  return 0;
}

std::int64_t reduced_bytes(const Touch& touch, int ranks) {
  const bool reduces =
      touch.kind == Touch::Kind::reduce_for_all || touch.kind == Touch::Kind::reduce_into ||
      touch.kind == Touch::Kind::reduce_part || touch.kind == Touch::Kind::reduce_to;
  return reduces ? (ranks - 1) * touch.mine.bytes : 0;
}

std::int64_t RankSchedule::own_number(std::size_t step) const {
  const auto end = steps.begin() + static_cast<std::ptrdiff_t>(step) + 1;
  return std::count_if(steps.begin(), end, [this](const Step& each) {
    return each.kind != StepKind::touch || touch(each).kind != Touch::Kind::use;
  });
}

Totals totals_of(const Schedule& schedule) {
  Totals totals;
  for (int rank = 0; rank < schedule.size(); ++rank) {
    const RankSchedule& own = schedule.of(rank);
    std::int64_t steps = 0, bytes = 0;
    for (const Step& step : own.steps) {
      const bool sends = step.kind == StepKind::exchange && step.to != kNobody;
      totals.messages += sends ? 1 : 0;
      if (sends) bytes += schedule.out_bytes(step);
      if (step.kind == StepKind::touch) {
        bytes += moved_bytes(own.touch(step), rank, schedule.size());
      } else {
        ++steps;
      }
    }
    totals.steps = std::max(totals.steps, steps);
    totals.bytes += bytes;
    totals.busiest_bytes = std::max(totals.busiest_bytes, bytes);
  }
  return totals;
}

}  // namespace ringlet::comm
