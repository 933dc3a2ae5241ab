#include "train/all_reduce_bench/read_all.h"

#include <cstddef>
#include <cstring>

namespace ringlet::train {

std::uint64_t read_all(const void* data, std::int64_t bytes) {
  const auto* memory = static_cast<const std::byte*>(data);
  constexpr std::int64_t kWord = sizeof(std::uint64_t);
  const std::int64_t words = bytes / kWord;
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < words; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, memory + i * kWord, sizeof word);
    sum += word;
  }
  for (std::int64_t i = words * kWord; i < bytes; ++i) sum += static_cast<std::uint64_t>(memory[i]);
  return sum;
}

}  // namespace ringlet::train
