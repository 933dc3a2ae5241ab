#include "bench/peers/data.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace ringlet::bench::peers {

void write_input(std::span<float> data, int rank, int ranks, int call) {
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i] = input(rank, ranks, call, static_cast<std::int64_t>(i));
  }
}

std::int64_t count_wrong(std::span<const float> data, int ranks, int call, std::int64_t first) {
  constexpr std::size_t kBlock = 1024;  // a block at a time, rank by rank, in loops that vectorise
  std::array<float, kBlock> expected{};
  std::int64_t wrong = 0;
  for (std::size_t begin = 0; begin < data.size(); begin += kBlock) {
    const std::span block = data.subspan(begin, std::min(kBlock, data.size() - begin));
    expected.fill(0);
    for (int rank = 0; rank < ranks; ++rank) {
      for (std::size_t i = 0; i < kBlock; ++i) {
        expected[i] += input(rank, ranks, call, first + static_cast<std::int64_t>(begin + i));
      }
    }
    for (std::size_t i = 0; i < block.size(); ++i) wrong += block[i] == expected[i] ? 0 : 1;
  }
  return wrong;
}

std::int64_t count_wrong_of(std::span<const float> data, int rank, int ranks, int call,
                            std::int64_t first) {
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < data.size(); ++i) {
    wrong += data[i] == input(rank, ranks, call, first + static_cast<std::int64_t>(i)) ? 0 : 1;
  }
  return wrong;
}

}  // namespace ringlet::bench::peers
