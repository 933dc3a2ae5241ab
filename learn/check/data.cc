#include "learn/check/data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <optional>
#include <vector>

#include "kernels/narrow_floats.h"

namespace ringlet::learn {

namespace {

constexpr std::align_val_t kAlignment{64};
constexpr std::byte kGuard{0xA5};
constexpr int kDigit = 8;  // of a number that says whose are in it

bool adds(ReduceOp op) { return op == ReduceOp::sum || op == ReduceOp::mean; }

void set_number(const View& data, std::int64_t index, double number) {
  const auto value = static_cast<float>(number);
  auto* const at = static_cast<std::byte*>(data.data()) + index * size_of(data.dtype());
  const auto put = [at](auto stored) { std::memcpy(at, &stored, sizeof stored); };
  switch (data.dtype()) {
    case DType::f32:
      return put(value);
    case DType::bf16:
      return put(to_bfloat16(value));
    case DType::f16:
      return put(to_half(value));
    case DType::i32:
      return put(static_cast<std::int32_t>(number));
    case DType::u8:
      return;
  }
}

double number_of(Fill with, const Case& at, int rank, std::int64_t index) {
  if (with == Fill::rounds) return 1 / (3.0 + static_cast<double>(index) + 7.0 * rank);
  if (with == Fill::who && adds(at.op)) return std::pow(kDigit, rank);
  if (with == Fill::who) return static_cast<double>((rank + index) % at.ranks + 1);
  const int sign = index % 2 == 0 ? -1 : 1;  // or who begins a maximum with 0 would be right
  if (is_narrow(at.dtype)) return static_cast<double>(sign * (index % 5 + rank + 1));
  return static_cast<double>(sign * (16 * (index + 1) + rank));
}

double reduced(double a, double b, ReduceOp op) {
  if (op == ReduceOp::min) return std::min(a, b);
  return op == ReduceOp::max ? std::max(a, b) : a + b;
}

/// How often each rank is in a sum of Fill::who.
std::optional<std::vector<int>> counts_in(double number, int ranks) {
  const double nearest = std::round(number);
  const bool is_whole = std::abs(number - nearest) < 0.25 && nearest >= 0;
  if (!is_whole || nearest >= std::pow(kDigit, ranks)) return std::nullopt;
  std::vector<int> counts;
  auto left = static_cast<std::int64_t>(nearest);
  for (int rank = 0; rank < ranks; ++rank, left /= kDigit) {
    counts.push_back(static_cast<int>(left % kDigit));
  }
  return counts;
}

bool is_each_once(const std::vector<int>& counts) {
  return std::all_of(counts.begin(), counts.end(), [](int count) { return count == 1; });
}

/// "0, 1 (twice) and 2"
std::string text_of_counts(const std::vector<int>& counts) {
  std::vector<std::string> names;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    if (counts[rank] == 0) continue;
    std::string name = std::to_string(rank);
    if (counts[rank] == 2) name += " (twice)";
    if (counts[rank] > 2) name += fmt::format(" ({} times)", counts[rank]);
    names.push_back(name);
  }
  if (names.empty()) return "no rank";
  std::string text = names.front();
  for (std::size_t i = 1; i < names.size(); ++i) {
    text += (i + 1 == names.size() ? " and " : ", ") + names[i];
  }
  return text;
}

std::string explain_who(double number, double expected, const Case& at) {
  const std::vector<int> all(static_cast<std::size_t>(at.ranks), 1);
  const std::string should =
      fmt::format("; it should have those of {}, each once", text_of_counts(all));
  const auto as_sum = counts_in(number, at.ranks);
  if (at.op == ReduceOp::sum) {
    if (as_sum) return fmt::format("has the numbers of {}{}", text_of_counts(*as_sum), should);
    return fmt::format("is {}; it should be {}", number, expected);
  }
  if (as_sum && is_each_once(*as_sum)) {
    return fmt::format("has the sum of all ranks, not divided by {}", at.ranks);
  }
  const auto divided = counts_in(number * at.ranks, at.ranks);
  const auto twice = counts_in(number * at.ranks * at.ranks, at.ranks);
  if (twice && is_each_once(*twice)) {
    return fmt::format("has the sum of all ranks, divided by {} twice", at.ranks);
  }
  if (divided) {
    return fmt::format("has the numbers of {}, divided by {}{}", text_of_counts(*divided), at.ranks,
                       should);
  }
  if (as_sum) {
    return fmt::format("has the numbers of {}, not divided by {}{}", text_of_counts(*as_sum),
                       at.ranks, should);
  }
  return fmt::format("is {}; it should be {}", number, expected);
}

/// Of a least or largest in Fill::who: whose number it is.
int owner_of(double number, const Case& at, std::int64_t index) {
  for (int rank = 0; rank < at.ranks; ++rank) {
    if (number_of(Fill::who, at, rank, index) == number) return rank;
  }
  return -1;
}

/// Another place where this number would be right; -1: none.
std::int64_t place_of(double number, Fill with, const Case& at) {
  for (std::int64_t index = 0; index < at.elements; ++index) {
    if (is_right(number, expected_at(with, at, index), with, at)) return index;
  }
  return -1;
}

}  // namespace

void Data::Free::operator()(std::byte* memory) const { ::operator delete[](memory, kAlignment); }

Data::Data(std::int64_t count, DType dtype) {
  const std::int64_t bytes = count * size_of(dtype) + 2 * kGuardBytes;
  const auto all = static_cast<std::size_t>(bytes);
  memory_.reset(static_cast<std::byte*>(::operator new[](all, kAlignment)));
  std::fill_n(memory_.get(), bytes, kGuard);
  view_ = View(memory_.get() + kGuardBytes, {count}, dtype);
}

std::string Data::damage() const {
  const auto is_whole = [](std::byte byte) { return byte == kGuard; };
  const std::byte* const begin = memory_.get();
  const std::byte* const data = begin + kGuardBytes;
  const std::byte* const end = data + view_.bytes();
  if (!std::all_of(begin, data, is_whole)) return "writes before its data";
  const auto* const behind = std::find_if_not(end, end + kGuardBytes, is_whole);
  if (behind == end + kGuardBytes) return {};
  return fmt::format("writes behind its data, at element {} of {}",
                     (behind - data) / size_of(view_.dtype()), view_.count());
}

double number_at(const View& data, std::int64_t index) {
  const auto* const at = static_cast<std::byte*>(data.data()) + index * size_of(data.dtype());
  const auto get = [at](auto stored) {
    std::memcpy(&stored, at, sizeof stored);
    return stored;
  };
  switch (data.dtype()) {
    case DType::f32:
      return get(float{});
    case DType::bf16:
      return widen(get(BFloat16{}));
    case DType::f16:
      return widen(get(Half{}));
    case DType::i32:
      return get(std::int32_t{});
    case DType::u8:
      break;
  }
  return 0;
}

void fill(const View& data, Fill with, const Case& at, int rank) {
  for (std::int64_t index = 0; index < data.count(); ++index) {
    set_number(data, index, number_of(with, at, rank, index));
  }
}

double expected_at(Fill with, const Case& at, std::int64_t index) {
  double result = number_of(with, at, 0, index);
  for (int rank = 1; rank < at.ranks; ++rank) {
    result = reduced(result, number_of(with, at, rank, index), at.op);
  }
  if (at.op == ReduceOp::mean) result /= at.ranks;
  return at.dtype == DType::i32 ? std::trunc(result) : result;
}

/// A mean may be rounded after each of its additions, or before.
bool is_right(double number, double expected, Fill with, const Case& at) {
  const bool may_round = with == Fill::rounds || at.op == ReduceOp::mean;
  double tolerance = may_round ? 1e-6 : 0;
  if (is_narrow(at.dtype)) tolerance = 0x1p-6;
  if (at.dtype == DType::i32) tolerance = 0;
  return std::abs(number - expected) <= tolerance * std::abs(expected);
}

std::string explain(double number, double expected, Fill with, const Case& at, std::int64_t index) {
  if (with == Fill::who && adds(at.op)) return explain_who(number, expected, at);
  if (with == Fill::who) {
    const int is = owner_of(number, at, index), should = owner_of(expected, at, index);
    if (is >= 0) {
      return fmt::format("has the number of rank {}; that of rank {} is the {}", is, should,
                         at.op == ReduceOp::min ? "least" : "largest");
    }
  } else if (const std::int64_t other = place_of(number, with, at); other >= 0) {
    return fmt::format("has what element {} should have", other);
  }
  return fmt::format("is {}; it should be {}", number, expected);
}

}  // namespace ringlet::learn
