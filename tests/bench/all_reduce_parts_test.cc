// What the benchmark of all-reduce is made of: sizes, numbers whose sums are exact, and passes over
// memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "bench/all_reduce/copy_bandwidth.h"
#include "bench/all_reduce/core_distance.h"
#include "bench/all_reduce/read_all.h"
#include "bench/all_reduce/sizes.h"
#include "bench/all_reduce/test_pattern.h"

namespace ringlet::bench {
namespace {

TEST(Sizes, AreReadAndWrittenInPowersOf1024) {
  EXPECT_EQ(parse_size("4096"), 4096);
  EXPECT_EQ(parse_size("4K"), 4096);
  EXPECT_EQ(parse_size("4k"), 4096);
  EXPECT_EQ(parse_size("4KiB"), 4096);
  EXPECT_EQ(parse_size("64M"), 64 << 20);
  EXPECT_EQ(parse_size("1G"), 1 << 30);
  for (const char* bad : {"", "K", "4X", "4Kb", "-4", "4.5K", "4 K", "0x10", "9999999999G"}) {
    EXPECT_FALSE(parse_size(bad)) << bad;
  }
  EXPECT_EQ(size_text(4096), "4K");
  EXPECT_EQ(size_text(1536), "1536");
  EXPECT_EQ(size_text(3 << 20), "3M");
}

using Sizes = std::vector<std::int64_t>;

TEST(Sizes, GrowByAFactorOrAStepInWholeElements) {
  EXPECT_EQ(sizes_of({.begin = 4, .end = 64, .factor = 4}, 4), (Sizes{4, 16, 64}));
  EXPECT_EQ(sizes_of({.begin = 4, .end = 63, .factor = 4}, 4), (Sizes{4, 16}));
  EXPECT_EQ(sizes_of({.begin = 8, .end = 20, .step = 6}, 4), (Sizes{8, 12, 20}));
  EXPECT_EQ(sizes_of({.begin = 8, .end = 11, .step = 1}, 4), (Sizes{8}));
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  EXPECT_EQ(sizes_of({.begin = kHuge, .end = kHuge, .factor = 4}, 4), (Sizes{kHuge}));
  EXPECT_EQ(sizes_of({.begin = 1, .end = kHuge, .step = kHuge}, 1), (Sizes{1}));
  EXPECT_THROW(sizes_of({.begin = 4, .end = kHuge, .step = 4}, 4), ContractError);
  EXPECT_EQ(sizes_of({.begin = 16, .end = 64, .factor = 2}, 4, 3), (Sizes{12, 24, 60}));
  EXPECT_THROW(sizes_of({.begin = 8, .end = 64}, 4, 3), ContractError);
  EXPECT_THROW(sizes_of({.begin = 8, .end = 4}, 4), ContractError);
  EXPECT_THROW(sizes_of({.begin = 2, .end = 4}, 4), ContractError);
}

template <class T>
std::vector<T> input_of(const TestPattern& pattern, std::int64_t iteration, std::size_t count) {
  std::vector<T> data(count);
  pattern.write_input(iteration, data.data(), static_cast<std::int64_t>(count * sizeof(T)));
  return data;
}

constexpr std::size_t kCount = 20000;  // more than a table holds
constexpr std::int64_t kBytes = kCount * 4;

std::vector<float> sum_of(int ranks, ReduceOp op, std::int64_t iteration) {
  std::vector<float> sum(kCount);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto mine = input_of<float>(TestPattern(DType::f32, op, rank, ranks), iteration, kCount);
    for (std::size_t i = 0; i < kCount; ++i) sum[i] += mine[i];
  }
  return sum;
}

TEST(TestPatterns, KnowTheirSum) {
  const TestPattern pattern(DType::f32, ReduceOp::sum, 1, 3);
  std::vector<float> sum = sum_of(3, ReduceOp::sum, 7);
  EXPECT_EQ(pattern.count_wrong(7, sum.data(), kBytes), 0);
  sum[0] += 1;
  sum[kCount - 1] += 1;
  EXPECT_EQ(pattern.count_wrong(7, sum.data(), kBytes), 2);
}

TEST(TestPatterns, KnowTheMeanWhichIsExact) {
  const TestPattern pattern(DType::f32, ReduceOp::mean, 0, 3);
  std::vector<float> mean = sum_of(3, ReduceOp::mean, 0);
  for (float& x : mean) x /= 3;
  EXPECT_EQ(pattern.count_wrong(0, mean.data(), kBytes), 0);
}

TEST(TestPatterns, KnowTheLeastOfSomeNegativeNumbers) {
  const TestPattern first(DType::i32, ReduceOp::min, 0, 2), second(DType::i32, ReduceOp::min, 1, 2);
  auto least = input_of<std::int32_t>(first, 5, kCount);
  const auto others = input_of<std::int32_t>(second, 5, kCount);
  for (std::size_t i = 0; i < kCount; ++i) least[i] = std::min(least[i], others[i]);
  EXPECT_EQ(first.count_wrong(5, least.data(), kBytes), 0);
  EXPECT_LT(*std::min_element(least.begin(), least.end()), 0);
}

float value_of(DType type, std::uint16_t bits) {
  if (type == DType::bf16) return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
  const int exponent = bits >> 10U & 31U, fraction = bits & 1023U;
  const float value =
      exponent == 0 ? 0 : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return (bits & 0x8000U) != 0 ? -value : value;
}

TEST(TestPatterns, WriteNarrowFloatsWithTheirOwnBits) {
  for (const auto& [type, most] : {std::pair{DType::bf16, 256.0F}, {DType::f16, 2048.0F}}) {
    const TestPattern first(type, ReduceOp::min, 0, 2), second(type, ReduceOp::min, 1, 2);
    auto least = input_of<std::uint16_t>(first, 3, 1000);
    const auto others = input_of<std::uint16_t>(second, 3, 1000);
    float largest = 0;
    for (std::size_t i = 0; i < 1000; ++i) {
      const float a = value_of(type, least[i]), b = value_of(type, others[i]);
      EXPECT_EQ(a, std::round(a));
      largest = std::max({largest, std::abs(a), std::abs(b)});
      if (b < a) least[i] = others[i];
    }
    EXPECT_LE(largest, most);
    EXPECT_GT(largest, 0.9F * most);
    EXPECT_EQ(first.count_wrong(3, least.data(), 2000), 0);
  }
}

float as_bf16(float x) {
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(x) + 0x8000U) & 0xFFFF0000U);
}

float as_f16(float x) {  // of numbers that f16 has the exponents of
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(x) + 0x1000U) & 0xFFFFE000U);
}

TEST(TestPatterns, SeeWhatFewerBitsLose) {
  for (const int ranks : {2, 8, 64}) {
    std::vector<float> sent(kCount), summed(kCount);
    for (int rank = 0; rank < ranks; ++rank) {
      const auto mine =
          input_of<float>(TestPattern(DType::f32, ReduceOp::sum, rank, ranks), 7, kCount);
      for (std::size_t i = 0; i < kCount; ++i) {
        sent[i] += as_bf16(mine[i]);
        summed[i] = as_f16(summed[i] + mine[i]);
      }
    }
    const TestPattern pattern(DType::f32, ReduceOp::sum, 0, ranks);
    constexpr auto kMost = static_cast<std::int64_t>(kCount * 9 / 10);
    EXPECT_GT(pattern.count_wrong(7, sent.data(), kBytes), kMost) << ranks;
    EXPECT_GT(pattern.count_wrong(7, summed.data(), kBytes), kMost) << ranks;
  }
}

TEST(TestPatterns, AreExactInEachTypeWithItsLargestNumbers) {
  const TestPattern pattern(DType::i32, ReduceOp::sum, 0, 3);
  std::vector<std::int32_t> sum(kCount);
  for (int rank = 0; rank < 3; ++rank) {
    const auto mine =
        input_of<std::int32_t>(TestPattern(DType::i32, ReduceOp::sum, rank, 3), 7, kCount);
    for (std::size_t i = 0; i < kCount; ++i) sum[i] += mine[i];
  }
  EXPECT_EQ(pattern.count_wrong(7, sum.data(), kBytes), 0);
  EXPECT_GT(*std::max_element(sum.begin(), sum.end()), 1 << 30);
}

TEST(TestPatterns, OfWhatIsMovedHaveAnyBitsButNoNaN) {
  const TestPattern pattern(DType::f32, 1);
  auto data = input_of<float>(pattern, 7, kCount);
  EXPECT_EQ(pattern.count_wrong_of(1, 7, data.data(), kBytes, 0), 0);
  std::uint32_t any = 0;
  for (float& x : data) {
    EXPECT_TRUE(std::isfinite(x));
    any |= std::bit_cast<std::uint32_t>(x);
    x = as_bf16(x);
  }
  EXPECT_EQ(any, ~0U);
  EXPECT_GT(pattern.count_wrong_of(1, 7, data.data(), kBytes, 0),
            static_cast<std::int64_t>(kCount * 9 / 10));
}

TEST(TestPatterns, AFormerResultIsWrong) {
  const TestPattern pattern(DType::f32, ReduceOp::sum, 0, 2);
  const std::vector<float> sum = sum_of(2, ReduceOp::sum, 7);
  EXPECT_GT(pattern.count_wrong(8, sum.data(), kBytes), kBytes / 4 * 9 / 10);
}

TEST(TestPatterns, RefuseWhatTheTypeCannotHold) {
  EXPECT_THROW(require_exact(DType::bf16, ReduceOp::sum, 512), ContractError);
  EXPECT_THROW(require_exact(DType::bf16, ReduceOp::mean, 32), ContractError);
  EXPECT_NO_THROW(require_exact(DType::bf16, ReduceOp::max, 512));
  EXPECT_THROW(TestPattern(DType::u8, ReduceOp::sum, 0, 2), ContractError);
  EXPECT_NO_THROW(TestPattern(DType::bf16, ReduceOp::sum, 0, 512));  // for --no-check
}

/// The sum that read_all() promises, word by word and byte by byte.
std::uint64_t sum_plainly(const std::uint8_t* data, std::int64_t bytes) {
  std::uint64_t sum = 0;
  std::int64_t at = 0;
  for (; at + 8 <= bytes; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data + at, 8);
    sum += word;
  }
  for (; at < bytes; ++at) sum += data[at];
  return sum;
}

/// Bytes of which no two runs of a vector have the same sum, and none is 0.
std::vector<std::uint8_t> mixed_bytes(std::size_t count) {
  std::vector<std::uint8_t> data(count);
  std::uint32_t state = 1;
  for (std::uint8_t& byte : data) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::uint8_t>(state >> 24U | 1U);
  }
  return data;
}

TEST(ReadAll, SumsTheSameByEveryLoopAtAnyLengthAndAddress) {
  constexpr std::int64_t kLongest = 1100;  // blocks of every loop, and what is left of them
  const auto data = mixed_bytes(kLongest + 64);
  const auto loops = read_loops();
  EXPECT_STREQ(loops.back().name, "portable");
  for (const ReadLoop& loop : loops) {
    for (const int offset : {0, 1, 4, 7, 31, 63}) {
      for (std::int64_t bytes = 0; bytes <= kLongest; ++bytes) {
        const std::uint8_t* const begin = data.data() + offset;
        ASSERT_EQ(loop.read(begin, bytes), sum_plainly(begin, bytes))
            << loop.name << ": " << bytes << " bytes, " << offset << " from the allocation's begin";
      }
    }
  }
  EXPECT_EQ(read_all(data.data(), kLongest), sum_plainly(data.data(), kLongest));
}

TEST(ReadAll, DependsOnEveryByteByEveryLoop) {
  constexpr std::int64_t kOddBytes = 2 * 256 + 67;
  auto data = mixed_bytes(kOddBytes);
  for (const ReadLoop& loop : read_loops()) {
    const std::uint64_t sum = loop.read(data.data(), kOddBytes);
    for (std::uint8_t& byte : data) {
      ++byte;
      EXPECT_NE(loop.read(data.data(), kOddBytes), sum)
          << loop.name << ", byte " << &byte - data.data();
      --byte;
    }
  }
}

TEST(StreamingCopy, Copies) {
  if constexpr (kHasStreamingCopy) {
    alignas(64) char from[256], to[256] = {};
    for (int i = 0; i < 256; ++i) from[i] = static_cast<char>(i);
    streaming_copy(from, to, sizeof from);
    EXPECT_EQ(std::memcmp(from, to, sizeof from), 0);
  } else {
    GTEST_SKIP() << "this processor has no streaming stores";
  }
}

TEST(CoreDistances, AreMeasuredAndNamed) {
  const auto distance = measure_core_distance();
  if (!distance) GTEST_SKIP() << "one processor";
  EXPECT_GT(distance->nanoseconds, 1);
  EXPECT_STREQ(CoreDistance{25}.word(), "near");
  EXPECT_STREQ(CoreDistance{156}.word(), "far");
}

}  // namespace
}  // namespace ringlet::bench
