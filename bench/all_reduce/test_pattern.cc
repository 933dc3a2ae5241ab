#include "bench/all_reduce/test_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace ringlet::bench {

namespace {

constexpr std::int64_t kPeriod = 1021;
constexpr std::int64_t kShift = 509;  // between two ranks, of a table that all share
constexpr std::int64_t kPeriods = 8;  // of a table; one less is copied at once, from any offset

/// Up to here the type has every whole number.
std::int64_t exact_up_to(DType type) {
  switch (type) {
    case DType::bf16:
      return 1 << 8;
    case DType::f16:
      return 1 << 11;
    case DType::f32:
      return 1 << 24;
    case DType::i32:
      return (std::int64_t{1} << 31) - 1;
    default:
      throw ContractError(fmt::format("{} cannot be reduced", name_of(type)));
  }
}

/// A whole number that f16 holds exactly.
std::uint16_t to_half_bits(std::int64_t value) {
  const auto magnitude = static_cast<std::uint32_t>(std::abs(value));
  const std::uint32_t sign = value < 0 ? 0x8000U : 0U;
  if (magnitude == 0) return static_cast<std::uint16_t>(sign);
  const auto exponent = static_cast<std::uint32_t>(std::bit_width(magnitude) - 1);
  const std::uint32_t fraction = (magnitude << 10U >> exponent) & 0x3FFU;
  return static_cast<std::uint16_t>(sign | (exponent + 15) << 10U | fraction);
}

/// A whole number that the type holds exactly.
std::uint32_t bits_of(DType type, std::int64_t value) {
  if (type == DType::i32) return static_cast<std::uint32_t>(value);
  if (type == DType::f16) return to_half_bits(value);
  const auto f32 = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return type == DType::bf16 ? f32 >> 16U : f32;
}

/// Spreads (rank, index) over 64 bits (SplitMix64's finalizer; Steele, Lea and Flood, 2014).
std::uint64_t scattered(std::uint64_t rank, std::uint64_t index) {
  std::uint64_t x = (rank + 1) * 0x9E3779B97F4A7C15U + index * 0xD1B54A32D192ED03U;
  x = (x ^ x >> 30U) * 0xBF58476D1CE4E5B9U;
  x = (x ^ x >> 27U) * 0x94D049BB133111EBU;
  return x ^ x >> 31U;
}

/// The numbers that the ranks may hold: `unit` times low to high.
struct Numbers {
  std::int64_t low, high, unit;
  std::int64_t at(int rank, std::int64_t index) const {
    const auto range = static_cast<std::uint64_t>(high - low + 1);
    const auto chosen =
        scattered(static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(index)) % range;
    return unit * (low + static_cast<std::int64_t>(chosen));
  }
};

/// As large as they may be, so that they need all of the type's precision. Where sums of so many
/// ranks cannot be exact, 0 and 1.
Numbers numbers_of(DType type, ReduceOp op, int ranks) {
  const std::int64_t exact = exact_up_to(type);
  if (op == ReduceOp::min || op == ReduceOp::max) return {-exact, exact, 1};
  const std::int64_t unit = op == ReduceOp::mean ? ranks : 1;
  return {0, std::max<std::int64_t>(exact / (unit * ranks), 1), unit};
}

/// Any bits, but no NaN and no infinity: what only moves floats may still change a NaN's bits.
std::uint32_t moved_bits(DType type, std::int64_t index) {
  const auto any = static_cast<std::uint32_t>(scattered(0, static_cast<std::uint64_t>(index)));
  const auto finite = [](std::uint32_t bits, std::uint32_t exponent) {
    return (bits & exponent) == exponent ? bits ^ (exponent & (0U - exponent)) : bits;
  };
  constexpr std::uint32_t kHalf = 0xFFFFU;
  if (type == DType::f32) return finite(any, 0x7F800000U);
  if (type == DType::f16) return finite(any & kHalf, 0x7C00U);
  return type == DType::bf16 ? finite(any & kHalf, 0x7F80U) : any;
}

std::int64_t reduced(ReduceOp op, const Numbers& numbers, int ranks, std::int64_t index) {
  std::int64_t result = numbers.at(0, index);
  for (int rank = 1; rank < ranks; ++rank) {
    const std::int64_t other = numbers.at(rank, index);
    result = op == ReduceOp::min   ? std::min(result, other)
             : op == ReduceOp::max ? std::max(result, other)
                                   : result + other;
  }
  return op == ReduceOp::mean ? result / ranks : result;
}

/// Calls visit(begin, bytes) for pieces of `bytes` as long as a table can serve at once.
template <class Visit>
void in_pieces(std::int64_t bytes, std::int64_t element_bytes, Visit visit) {
  const std::int64_t piece = (kPeriods - 1) * kPeriod * element_bytes;
  for (std::int64_t begin = 0; begin < bytes; begin += piece) {
    visit(begin, std::min(piece, bytes - begin));
  }
}

}  // namespace

void require_exact(DType type, ReduceOp op, int ranks) {
  if (op == ReduceOp::min || op == ReduceOp::max) return;
  const std::int64_t exact = exact_up_to(type);
  if (exact / ranks / (op == ReduceOp::mean ? ranks : 1) > 0) return;
  throw ContractError(
      fmt::format("{} holds whole numbers up to {} exactly, too few to check the {} of {} ranks; "
                  "use another --type, fewer ranks or --no-check",
                  name_of(type), exact, name_of(op), ranks));
}

TestPattern::TestPattern(DType type, ReduceOp op, int rank, int ranks)
    : element_bytes_(size_of(type)) {
  const Numbers numbers = numbers_of(type, op, ranks);
  std::vector<std::uint32_t> mine(kPeriod), result(kPeriod);
  for (std::int64_t j = 0; j < kPeriod; ++j) {
    mine[static_cast<std::size_t>(j)] = bits_of(type, numbers.at(rank, j));
    result[static_cast<std::size_t>(j)] = bits_of(type, reduced(op, numbers, ranks, j));
  }
  input_ = table_of(mine);
  expected_ = table_of(result);
}

TestPattern::TestPattern(DType type, int rank)
    : element_bytes_(size_of(type)), shift_(kShift * rank) {
  exact_up_to(type);  // throws where it is none of these types
  std::vector<std::uint32_t> all(kPeriod);
  for (std::int64_t j = 0; j < kPeriod; ++j) all[static_cast<std::size_t>(j)] = moved_bits(type, j);
  input_ = table_of(all);
}

std::vector<std::byte> TestPattern::table_of(const std::vector<std::uint32_t>& period) const {
  std::vector<std::byte> table(static_cast<std::size_t>(kPeriods * kPeriod * element_bytes_));
  for (std::int64_t j = 0; j < kPeriods * kPeriod; ++j) {
    const std::uint32_t wide = period[static_cast<std::size_t>(j % kPeriod)];
    const auto narrow = static_cast<std::uint16_t>(wide);
    const bool is_narrow = element_bytes_ == sizeof narrow;
    std::memcpy(table.data() + j * element_bytes_,
                is_narrow ? static_cast<const void*>(&narrow) : &wide,
                static_cast<std::size_t>(element_bytes_));
  }
  return table;
}

std::int64_t TestPattern::offset_of(std::int64_t elements) const {
  return elements % kPeriod * element_bytes_;
}

void TestPattern::write_input(std::int64_t iteration, void* data, std::int64_t bytes) const {
  const std::byte* table = input_.data() + offset_of(iteration + shift_);
  in_pieces(bytes, element_bytes_, [&](std::int64_t begin, std::int64_t length) {
    std::memcpy(static_cast<std::byte*>(data) + begin, table, static_cast<std::size_t>(length));
  });
}

std::int64_t TestPattern::count_wrong(std::int64_t iteration, const void* data, std::int64_t bytes,
                                      std::int64_t first) const {
  return count_unlike(expected_.data() + offset_of(iteration + first), data, bytes);
}

std::int64_t TestPattern::count_wrong_of(int rank, std::int64_t iteration, const void* data,
                                         std::int64_t bytes, std::int64_t first) const {
  return count_unlike(input_.data() + offset_of(iteration + kShift * rank + first), data, bytes);
}

std::int64_t TestPattern::count_unlike(const std::byte* table, const void* data,
                                       std::int64_t bytes) const {
  const auto width = static_cast<std::size_t>(element_bytes_);
  std::int64_t wrong = 0;
  in_pieces(bytes, element_bytes_, [&](std::int64_t begin, std::int64_t length) {
    const std::byte* piece = static_cast<const std::byte*>(data) + begin;
    if (std::memcmp(piece, table, static_cast<std::size_t>(length)) == 0) return;
    for (std::int64_t at = 0; at < length; at += element_bytes_) {
      if (std::memcmp(piece + at, table + at, width) != 0) ++wrong;
    }
  });
  return wrong;
}

}  // namespace ringlet::bench
