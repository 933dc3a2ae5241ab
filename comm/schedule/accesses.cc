#include "comm/schedule/accesses.h"

#include "base/error.h"

namespace ringlet::comm {

namespace {

Range part_of(const Range& shown, std::int64_t begin, std::int64_t bytes) {
  require(0 <= begin && begin + bytes <= shown.bytes, "Touch",
          "it lies within what the ranks have shown");
  return {shown.begin + begin, bytes};
}

}  // namespace

Accesses accesses_of(const Touch& touch, int rank, std::span<const Range> shown) {
  const auto of = [&](int other) {
    return part_of(shown[static_cast<std::size_t>(other)], touch.begin, touch.mine.bytes);
  };
  const auto of_all = [&](bool in_place_of_own) {
    std::vector<Range> ranges;
    for (int other = 0; other < static_cast<int>(shown.size()); ++other) {
      ranges.push_back(in_place_of_own && other == rank ? touch.mine : of(other));
    }
    return ranges;
  };
  const auto of_all_but = [&](int root) {
    std::vector<Range> ranges;
    for (int other = 0; other < static_cast<int>(shown.size()); ++other) {
      if (other != root) ranges.push_back(of(other));
    }
    return ranges;
  };
  switch (touch.kind) {
    case Touch::Kind::use:
      return {.reads = {touch.mine}, .writes = {touch.mine}};
    case Touch::Kind::copy:
      return {.reads = {touch.from}, .writes = {touch.mine}};
    case Touch::Kind::read:
      return {.reads = {of(touch.of)}, .writes = {touch.mine}};
    case Touch::Kind::reduce_for_all:
      return {.reads = of_all(false), .writes = of_all(false)};
    case Touch::Kind::reduce_into:
      return {.reads = of_all(true), .writes = {touch.mine}};
    case Touch::Kind::reduce_part:
      return {.reads = of_all(true), .writes = {touch.mine, of(rank)}};
    case Touch::Kind::reduce_to:
      return {.reads = of_all(false), .writes = {of(touch.of)}};
    case Touch::Kind::spread:
      return {.reads = {of(touch.of)}, .writes = of_all_but(touch.of)};
  }
  return {};
}

}  // namespace ringlet::comm
