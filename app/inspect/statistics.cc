#include "app/inspect/statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace ringlet::app::inspect {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// A binary float of sign, `exponent` and `mantissa` bits as IEEE 754 has them.
struct SmallFloat {
  int exponent;
  int mantissa;
  bool has_infinity = true;  // without: all ones are NaN, the rest of the top exponent are numbers

  double value_of(unsigned bits) const {
    const unsigned top = (1U << exponent) - 1;
    const unsigned fraction = bits & ((1U << mantissa) - 1);
    const unsigned biased = bits >> mantissa & top;
    const double sign = bits >> (exponent + mantissa) != 0 ? -1 : 1;
    const int bias = static_cast<int>(top >> 1);
    const bool all_ones = fraction == (1U << mantissa) - 1;
    if (biased == top && (has_infinity ? fraction != 0 : all_ones)) return kNaN;
    if (biased == top && has_infinity) return sign * std::numeric_limits<double>::infinity();
    const double unit = std::ldexp(1, -mantissa);
    if (biased == 0) return sign * std::ldexp(fraction * unit, 1 - bias);
    return sign * std::ldexp(1 + fraction * unit, static_cast<int>(biased) - bias);
  }
};

template <class T, class Convert>
void decode_as(std::span<const std::byte> bytes, std::span<double> numbers, Convert convert) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    T value{};
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    numbers[i] = convert(value);
  }
}

template <class T>
void decode_plain(std::span<const std::byte> bytes, std::span<double> numbers) {
  decode_as<T>(bytes, numbers, [](T value) { return static_cast<double>(value); });
}

template <class T>
void decode_small(std::span<const std::byte> bytes, std::span<double> numbers, SmallFloat kind) {
  decode_as<T>(bytes, numbers, [kind](T value) { return kind.value_of(value); });
}

}  // namespace

bool decode(std::string_view dtype, std::span<const std::byte> bytes, std::span<double> numbers) {
  if (dtype == "F32") return decode_plain<float>(bytes, numbers), true;
  if (dtype == "F64") return decode_plain<double>(bytes, numbers), true;
  if (dtype == "I64") return decode_plain<std::int64_t>(bytes, numbers), true;
  if (dtype == "U64") return decode_plain<std::uint64_t>(bytes, numbers), true;
  if (dtype == "I32") return decode_plain<std::int32_t>(bytes, numbers), true;
  if (dtype == "U32") return decode_plain<std::uint32_t>(bytes, numbers), true;
  if (dtype == "I16") return decode_plain<std::int16_t>(bytes, numbers), true;
  if (dtype == "U16") return decode_plain<std::uint16_t>(bytes, numbers), true;
  if (dtype == "I8") return decode_plain<std::int8_t>(bytes, numbers), true;
  if (dtype == "U8" || dtype == "BOOL") return decode_plain<std::uint8_t>(bytes, numbers), true;
  if (dtype == "F16") return decode_small<std::uint16_t>(bytes, numbers, {5, 10}), true;
  if (dtype == "BF16") return decode_small<std::uint16_t>(bytes, numbers, {8, 7}), true;
  if (dtype == "F8_E5M2") return decode_small<std::uint8_t>(bytes, numbers, {5, 2}), true;
  if (dtype == "F8_E4M3") return decode_small<std::uint8_t>(bytes, numbers, {4, 3, false}), true;
  return false;
}

void Statistics::add(std::span<const double> numbers) {
  std::int64_t count = 0;
  double sum = 0;
  for (const double x : numbers) {
    if (!std::isfinite(x)) {
      ++(std::isnan(x) ? nans_ : infinities_);
      continue;
    }
    const bool first = finite_ + count == 0;
    minimum_ = first ? x : std::min(minimum_, x);
    maximum_ = first ? x : std::max(maximum_, x);
    zeros_ += x == 0 ? 1 : 0;
    sum += x;
    ++count;
  }
  if (count == 0) return;
  const auto n = static_cast<double>(count), before = static_cast<double>(finite_);
  const double mean = sum / n, distance = mean - mean_;
  for (const double x : numbers) {
    if (std::isfinite(x)) squares_ += (x - mean) * (x - mean);
  }
  squares_ += distance * distance * (before * n / (before + n));
  mean_ += distance * (n / (before + n));
  finite_ += count;
}

double Statistics::minimum() const { return finite_ == 0 ? kNaN : minimum_; }
double Statistics::maximum() const { return finite_ == 0 ? kNaN : maximum_; }
double Statistics::mean() const { return finite_ == 0 ? kNaN : mean_; }
double Statistics::deviation() const {
  return finite_ == 0 ? kNaN : std::sqrt(squares_ / static_cast<double>(finite_));
}

}  // namespace ringlet::app::inspect
