#include <fmt/format.h>

#include <string>

#include "tests/cuda_stand_in/ptx/operations.h"
#include "tests/cuda_stand_in/ptx/over_rows.h"
#include "tests/cuda_stand_in/ptx/text.h"
#include "tests/cuda_stand_in/ptx/values.h"

namespace ringlet::ptx {

namespace {

template <class T>
void choose(Block& block, const Instruction& at) {
  T* to = block.row<T>(at.to[0]);
  const T *a = block.row<T>(at.from[0]), *b = block.row<T>(at.from[1]);
  const auto* is_first = block.row<std::uint8_t>(at.from[2]);
  block.each([=](int k) { to[k] = is_first[k] != 0 ? a[k] : b[k]; });
}

/// By so much; further than the type is wide, nothing of it is left but the sign.
template <class T, auto kOf>
void shift(Block& block, const Instruction& at) {
  T* to = block.row<T>(at.to[0]);
  const T* a = block.row<T>(at.from[0]);
  const auto* by = block.row<std::uint32_t>(at.from[1]);
  block.each([=](int k) { to[k] = kOf(a[k], by[k]); });
}

template <auto kOf>
constexpr auto kUnary = [](auto t) -> Handler { return unary<decltype(t), decltype(t), kOf>; };
template <auto kOf>
constexpr auto kBinary = [](auto t) -> Handler { return binary<decltype(t), decltype(t), kOf>; };
template <auto kOf>
constexpr auto kTernary = [](auto t) -> Handler { return ternary<decltype(t), kOf>; };
template <auto kOf>
constexpr auto kShift = [](auto t) -> Handler { return shift<decltype(t), kOf>; };

template <auto kOf>
Handler floating(std::string_view type) {
  if (type == "f32") return unary<float, float, kOf>;
  return type == "f64" ? unary<double, double, kOf> : nullptr;
}

/// Predicates are 0 and 1, so their bits are combined as those of integers.
template <auto kOf>
Handler bitwise(std::string_view type) {
  if (type == "pred") return binary<std::uint8_t, std::uint8_t, kOf>;
  return integer(type, kBinary<kOf>);
}

Handler compare(std::string_view how, std::string_view type) {
  const auto with = [type](auto of) {
    return number(
        type, [](auto t) -> Handler { return binary<std::uint8_t, decltype(t), decltype(of){}>; });
  };
  const auto of_floats = [type](auto of) -> Handler {
    if (type == "f32") return binary<std::uint8_t, float, decltype(of){}>;
    return type == "f64" ? binary<std::uint8_t, double, decltype(of){}> : nullptr;
  };
  if (how == "eq") return with([](auto a, auto b) { return a == b; });
  if (how == "lt") return with([](auto a, auto b) { return a < b; });
  if (how == "le") return with([](auto a, auto b) { return a <= b; });
  if (how == "gt") return with([](auto a, auto b) { return a > b; });
  if (how == "ge") return with([](auto a, auto b) { return a >= b; });
  // Of floats, false where one is NaN; those that end in u are true there.
  if (how == "ne") return with([](auto a, auto b) { return a < b || a > b; });
  if (how == "equ") return of_floats([](auto a, auto b) { return !(a < b || a > b); });
  if (how == "neu") return of_floats([](auto a, auto b) { return a != b; });
  if (how == "ltu") return of_floats([](auto a, auto b) { return !(a >= b); });
  if (how == "leu") return of_floats([](auto a, auto b) { return !(a > b); });
  if (how == "gtu") return of_floats([](auto a, auto b) { return !(a <= b); });
  if (how == "geu") return of_floats([](auto a, auto b) { return !(a < b); });
  if (how == "num") return of_floats([](auto a, auto b) { return a == a && b == b; });
  if (how == "nan") return of_floats([](auto a, auto b) { return a != a || b != b; });
  return nullptr;
}

template <class From, class To>
void multiply_wide(Block& block, const Instruction& at) {
  To* to = block.row<To>(at.to[0]);
  const From *a = block.row<From>(at.from[0]), *b = block.row<From>(at.from[1]);
  block.each([=](int k) { to[k] = To{a[k]} * To{b[k]}; });
}

template <class From, class Wide>
void multiply_high(Block& block, const Instruction& at) {
  From* to = block.row<From>(at.to[0]);
  const From *a = block.row<From>(at.from[0]), *b = block.row<From>(at.from[1]);
  block.each([=](int k) { to[k] = static_cast<From>(Wide{a[k]} * Wide{b[k]} >> 32); });
}

void insert_bits(Block& block, const Instruction& at) {
  auto* to = block.row<std::uint64_t>(at.to[0]);
  const auto *what = block.row<std::uint64_t>(at.from[0]),
             *into = block.row<std::uint64_t>(at.from[1]);
  const auto *position = block.row<std::uint32_t>(at.from[2]),
             *length = block.row<std::uint32_t>(at.from[3]);
  block.each([=](int k) {
    const std::uint64_t ones = kLeft(kLeft(std::uint64_t{1}, length[k]) - 1, position[k]);
    to[k] = (into[k] & ~ones) | (kLeft(what[k], position[k]) & ones);
  });
}

}  // namespace

Handler arithmetic(const std::vector<std::string_view>& opcode, int to_width, int from_width) {
  const std::string_view op = opcode.front(), type = opcode.back();
  // What stands between, as in mul.wide.u32.
  const std::string how =
      opcode.size() < 3 ? std::string()
                        : fmt::format("{}", fmt::join(opcode.begin() + 1, opcode.end() - 1, "."));
  const bool is_float = type[0] == 'f', plain = how.empty() || (is_float && how == "rn");
  if (op == "mov" && plain) {
    return type == "pred" ? unary<std::uint8_t, std::uint8_t, kSame> : number(type, kUnary<kSame>);
  }
  if (op == "add" && plain) return number(type, kBinary<kAdd>);
  if (op == "add" && how == "rz" && type == "f32") {
    return binary<float, float, kAddTo<FE_TOWARDZERO>>;
  }
  if (op == "sub" && plain) return number(type, kBinary<kSubtract>);
  if (op == "mul" && (how == "lo" || (is_float && plain))) return number(type, kBinary<kMultiply>);
  if (op == "mul" && how == "wide") {
    if (type == "u32") return multiply_wide<std::uint32_t, std::uint64_t>;
    if (type == "s32") return multiply_wide<std::int32_t, std::int64_t>;
    if (type == "u16") return multiply_wide<std::uint16_t, std::uint32_t>;
    return nullptr;
  }
  if (op == "mul" && how == "hi") {
    if (type == "u32") return multiply_high<std::uint32_t, std::uint64_t>;
    return type == "s32" ? multiply_high<std::int32_t, std::int64_t> : nullptr;
  }
  if (op == "mad" && how == "lo") return integer(type, kTernary<kMultiplyAdd>);
  if (op == "fma" && how == "rn") {
    return type == "f32" ? ternary<float, kFma> : ternary<double, kFma>;
  }
  if (op == "fma" && how == "rm" && type == "f32") return ternary<float, kFmaDown>;
  if (op == "div" && plain) return number(type, kBinary<kDivide>);
  if (op == "min" && plain) return number(type, kBinary<kLeast>);
  if (op == "max" && plain) return number(type, kBinary<kMost>);
  if (op == "neg" && plain) return number(type, kUnary<kNegate>);
  if (op == "abs" && plain && is_float) return floating<kMagnitude>(type);
  if (op == "sqrt" && how == "rn") return floating<kRoot>(type);
  if (op == "rcp" && how == "rn") return floating<kReciprocal>(type);
  if (op == "rcp" && how == "approx.ftz") return floating<kAboutReciprocal>(type);
  if (op == "ex2" && how == "approx.ftz") return unary<float, float, kPowerOfTwo>;
  if (op == "copysign" && type == "f32") return binary<float, float, kSignOfFirst>;
  if (op == "and") return bitwise<kAnd>(type);
  if (op == "or") return bitwise<kOr>(type);
  if (op == "xor") return bitwise<kXor>(type);
  if (op == "not") {
    return type == "pred" ? unary<std::uint8_t, std::uint8_t, kNotPredicate>
                          : integer(type, kUnary<kNot>);
  }
  if (op == "shl") return integer(type, kShift<kLeft>);
  if (op == "shr") return integer(type, kShift<kRight>);
  if (op == "bfi" && type == "b64") return insert_bits;
  if (op == "selp") {
    return number(type, [](auto t) -> Handler { return choose<decltype(t)>; });
  }
  if (op == "setp") return compare(how, type);
  if (op == "cvt" && opcode.size() > 2) return convert(opcode, to_width, from_width);
  return nullptr;
}

}  // namespace ringlet::ptx
