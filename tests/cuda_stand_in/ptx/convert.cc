// cvt: from one type to another.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

#include "tests/cuda_stand_in/ptx/operations.h"
#include "tests/cuda_stand_in/ptx/over_rows.h"
#include "tests/cuda_stand_in/ptx/text.h"

namespace ringlet::ptx {

namespace {

constexpr auto kOfHalf = [](std::uint16_t bits) {
  return static_cast<float>(std::bit_cast<_Float16>(bits));
};
constexpr auto kToHalf = [](float x) -> std::uint16_t {
  constexpr std::uint16_t kNan = 0x7FFF;
  return x != x ? kNan : std::bit_cast<std::uint16_t>(static_cast<_Float16>(x));
};
constexpr auto kToBFloat16 = [](float x) -> std::uint16_t {
  constexpr std::uint16_t kNan = 0x7FFF;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return static_cast<std::uint16_t>(x != x ? kNan : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
};
constexpr auto kTruncated = [](float x) -> std::int64_t {
  if (x != x) return 0;
  if (x >= 0x1p63F) return std::numeric_limits<std::int64_t>::max();
  return x < -0x1p63F ? std::numeric_limits<std::int64_t>::min() : static_cast<std::int64_t>(x);
};
constexpr auto kBetween0And1 = [](float x) { return x > 0 ? std::min(x, 1.0F) : 0.0F; };

/// Of the low bytes of a register that may be wider than `From`.
template <class To, class From, class Stored>
void widen(Block& block, const Instruction& at) {
  To* to = block.row<To>(at.to[0]);
  const Stored* a = block.row<Stored>(at.from[0]);
  block.each([=](int k) { to[k] = static_cast<To>(static_cast<From>(a[k])); });
}

template <class To>
Handler widen_to(std::string_view from, int from_width) {
  return integer(from, [from_width](auto t) -> Handler {
    using From = decltype(t);
    if (from_width == 2) return widen<To, From, std::uint16_t>;
    return from_width == 4 ? widen<To, From, std::uint32_t> : widen<To, From, std::uint64_t>;
  });
}

}  // namespace

Handler convert(const std::vector<std::string_view>& opcode, int to_width, int from_width) {
  const std::string what = fmt::format("{}", fmt::join(opcode.begin() + 1, opcode.end(), "."));
  const std::string_view to = opcode[opcode.size() - 2], from = opcode.back();
  if (what == "f32.f16") return unary<float, std::uint16_t, kOfHalf>;
  if (what == "rn.f16.f32") return unary<std::uint16_t, float, kToHalf>;
  if (what == "rn.bf16.f32") return unary<std::uint16_t, float, kToBFloat16>;
  if (what == "f64.f32") return unary<double, float, kSame>;
  if (what == "rn.f32.f64") return unary<float, double, kSame>;
  if (what == "sat.f32.f32") return unary<float, float, kBetween0And1>;
  if (what == "rzi.s64.f32") return unary<std::int64_t, float, kTruncated>;
  if (what == "rn.f32.u16" && from_width == 2) return unary<float, std::uint16_t, kSame>;
  if (what == "rn.f32.u32" && from_width == 4) return unary<float, std::uint32_t, kSame>;
  if (what == "rn.f32.s32" && from_width == 4) return unary<float, std::int32_t, kSame>;
  if (what == "rn.f32.s64") return unary<float, std::int64_t, kSame>;
  if (what == "rn.f64.s64") return unary<double, std::int64_t, kSame>;
  const bool rounds = what.find('.') != what.rfind('.');
  if (rounds || to[0] == 'f' || to_width != width_of(to)) return nullptr;
  if (to_width == 2) return widen_to<std::uint16_t>(from, from_width);
  return to_width == 4 ? widen_to<std::uint32_t>(from, from_width)
                       : widen_to<std::uint64_t>(from, from_width);
}

}  // namespace ringlet::ptx
