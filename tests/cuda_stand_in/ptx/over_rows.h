// Handlers that make a row of one, two or three others, by a function of a thread's values.
#pragma once

#include <cstdint>
#include <string_view>

#include "tests/cuda_stand_in/ptx/block.h"

namespace ringlet::ptx {

template <class To, class From, auto kOf>
void unary(Block& block, const Instruction& at) {
  To* to = block.row<To>(at.to[0]);
  const From* a = block.row<From>(at.from[0]);
  block.each([=](int k) { to[k] = static_cast<To>(kOf(a[k])); });
}

template <class To, class From, auto kOf>
void binary(Block& block, const Instruction& at) {
  To* to = block.row<To>(at.to[0]);
  const From* a = block.row<From>(at.from[0]);
  const From* b = block.row<From>(at.from[1]);
  block.each([=](int k) { to[k] = static_cast<To>(kOf(a[k], b[k])); });
}

template <class T, auto kOf>
void ternary(Block& block, const Instruction& at) {
  T* to = block.row<T>(at.to[0]);
  const T *a = block.row<T>(at.from[0]), *b = block.row<T>(at.from[1]);
  const T* c = block.row<T>(at.from[2]);
  block.each([=](int k) { to[k] = static_cast<T>(kOf(a[k], b[k], c[k])); });
}

constexpr auto kSame = [](auto a) { return a; };

/// of(T{}) for the integer of that type, null for what is none.
template <class F>
Handler integer(std::string_view type, F of) {
  if (type == "s16") return of(std::int16_t{});
  if (type == "u16" || type == "b16") return of(std::uint16_t{});
  if (type == "s32") return of(std::int32_t{});
  if (type == "u32" || type == "b32") return of(std::uint32_t{});
  if (type == "s64") return of(std::int64_t{});
  if (type == "u64" || type == "b64") return of(std::uint64_t{});
  return nullptr;
}

template <class F>
Handler number(std::string_view type, F of) {
  if (type == "f32") return of(float{});
  if (type == "f64") return of(double{});
  return integer(type, of);
}

}  // namespace ringlet::ptx
