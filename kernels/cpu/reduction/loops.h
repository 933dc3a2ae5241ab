// The loops of kernels/reduce.h and of casts, as templates over an instruction set's stores:
//
//   static void line(std::byte* to, const std::byte* from)
//       to[0, 64) = from[0, 64), past the caches; `to` begins a line
//   static void end()
//       orders these stores before what follows
//   static void across(void* to, const void* from, std::size_t bytes)
//       copies by whole lines that need not be read before; these stay in the caches
//
// portable.cc, avx2.cc and avx512.cc compile them with the options of their instruction set. Every
// template has that parameter, which keeps the sets' functions apart for the linker.
//
// Elements are taken a block at a time: the block's results stand in the first-level cache until
// they are written to all targets, so every source is read once and every target written once,
// however many there are, and it does not matter which of them are the same memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/reduction/table.h"
#include "kernels/reduction.h"

namespace ringlet::impl {

inline constexpr std::size_t kLine = 64;

/// Writes whole lines to `to`, which begins one, past the caches; what is left over as usual.
template <class Streaming>
void stream_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t whole = bytes / kLine * kLine;
  for (std::size_t i = 0; i < whole; i += kLine) Streaming::line(to + i, from + i);
  std::memcpy(to + whole, from + whole, bytes - whole);
}

template <class Streaming, class T>
void store(const T* results, std::int64_t count, T* to, Stores stores) {
  const auto bytes = static_cast<std::size_t>(count) * sizeof(T);
  if (stores == Stores::streaming && reinterpret_cast<std::uintptr_t>(to) % kLine == 0) {
    stream_bytes<Streaming>(reinterpret_cast<std::byte*>(to),
                            reinterpret_cast<const std::byte*>(results), bytes);
  } else if (stores == Stores::across) {
    Streaming::across(to, results, bytes);
  } else {
    std::memcpy(to, results, bytes);
  }
}

/// sum = combine(x_0, x_1, ...) of the elements [at, at + count).
template <class Streaming, class T, class Combine>
void combine_block(const ReduceArguments& a, std::int64_t at, std::int64_t count,
                   reduction::Accumulator<T>* __restrict sum) {
  constexpr Combine kCombine;
  const auto source = [&a, at](int k) { return static_cast<const T*>(a.xs[k]) + at; };
  const T* first = source(0);
  if (a.sources == 1) {
    for (std::int64_t i = 0; i < count; ++i) sum[i] = reduction::load(first[i]);
  } else {
    const T* second = source(1);
    for (std::int64_t i = 0; i < count; ++i) {
      sum[i] = kCombine(reduction::load(first[i]), reduction::load(second[i]));
    }
  }
  for (int k = 2; k < a.sources; ++k) {
    const T* next = source(k);
    for (std::int64_t i = 0; i < count; ++i) sum[i] = kCombine(sum[i], reduction::load(next[i]));
  }
  if (a.divisor > 1) {
    const auto divisor = static_cast<reduction::Accumulator<T>>(a.divisor);
    for (std::int64_t i = 0; i < count; ++i) sum[i] /= divisor;
  }
}

/// y[i] = combine(x[i], ...) in one pass, without a block between: the usual case of two ranks.
template <class Streaming, class T, class Combine>
void reduce_at_once(const ReduceArguments& a, std::int64_t begin, std::int64_t end) {
  constexpr Combine kCombine;
  const auto* first = static_cast<const T*>(a.xs[0]);
  const auto* second = static_cast<const T*>(a.xs[a.sources - 1]);
  auto* y = static_cast<T*>(a.ys[0]);
  auto* also = static_cast<T*>(a.ys[a.targets - 1]);
  // Arrays are the same or apart, so no element is another one's source.
  if (a.sources == 1) {
#pragma GCC ivdep
    for (std::int64_t i = begin; i < end; ++i) y[i] = also[i] = first[i];
  } else if (a.targets == 1) {
#pragma GCC ivdep
    for (std::int64_t i = begin; i < end; ++i) y[i] = kCombine(first[i], second[i]);
  } else {
    // One walk: several side by side are much slower on some processors, and little faster on
    // others (docs/all-reduce-measured.md).
#pragma GCC ivdep
    for (std::int64_t i = begin; i < end; ++i) y[i] = also[i] = kCombine(first[i], second[i]);
  }
}

template <class Streaming, class T, class Combine>
void reduce_range(const ReduceArguments& a, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kBlock = 512, kLongBlock = 2048;  // the instruction takes long to start
  using Accumulator = reduction::Accumulator<T>;
  if constexpr (std::is_same_v<T, Accumulator>) {
    const bool at_once =
        a.sources <= 2 && a.targets <= 2 && a.divisor == 1 && a.stores == Stores::cached;
    if (at_once) return reduce_at_once<Streaming, T, Combine>(a, begin, end);
  }
  alignas(kLine) Accumulator sum[kLongBlock];
  alignas(kLine) T results[kLongBlock];
  const bool streaming = a.stores == Stores::streaming;
  const std::int64_t block = a.stores == Stores::across ? kLongBlock : kBlock;
  std::int64_t count = block;
  for (std::int64_t at = begin; at < end; at += count) {
    count = std::min(block, end - at);
    const auto past_line = reinterpret_cast<std::uintptr_t>(static_cast<T*>(a.ys[0]) + at) % kLine;
    if (streaming && past_line % sizeof(T) == 0 && past_line != 0) {  // up to the next line
      count = std::min(count, static_cast<std::int64_t>((kLine - past_line) / sizeof(T)));
    }
    combine_block<Streaming, T, Combine>(a, at, count, sum);
    const T* rounded = results;
    if constexpr (std::is_same_v<T, Accumulator>) {
      rounded = sum;
    } else {
      for (std::int64_t i = 0; i < count; ++i) results[i] = reduction::round_to<T>(sum[i]);
    }
    for (int k = 0; k < a.targets; ++k) {
      const Stores stores = a.stores == Stores::across && k == 0 ? Stores::cached : a.stores;
      store<Streaming>(rounded, count, static_cast<T*>(a.ys[k]) + at, stores);
    }
  }
  if (streaming) Streaming::end();
}

/// y[i] = x[i] as y's type.
template <class Streaming, class From, class To>
void cast_range(const void* x, void* y, std::int64_t begin, std::int64_t end) {
  const auto* __restrict from = static_cast<const From*>(x);
  auto* __restrict to = static_cast<To*>(y);
  for (std::int64_t i = begin; i < end; ++i) {
    to[i] = reduction::round_to<To>(reduction::load(from[i]));
  }
}

template <class Streaming>
ReduceFunction find_reduction(ReduceOp op, DType dtype) {
  ReduceFunction function = nullptr;
  reduction::visit(op, dtype, [&]<class T, class Combine>(T, Combine) {
    function = &reduce_range<Streaming, T, Combine>;
  });
  return function;
}

template <class Streaming>
CastFunction find_cast(DType from, DType to) {
  CastFunction function = nullptr;
  reduction::visit_cast(from, to, [&]<class From, class To>(From, To) {
    function = &cast_range<Streaming, From, To>;
  });
  return function;
}

/// The functions of an instruction set.
template <class Streaming>
ReductionLoops loops_with() {
  return {find_reduction<Streaming>, find_cast<Streaming>};
}

}  // namespace ringlet::impl
