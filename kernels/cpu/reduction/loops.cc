// The loops of kernels/reduce.h and of casts, as templates over an instruction set (cpu/simd), of
// which they take the stores: the compiler makes vectors of the rest.
//
// Elements are taken a block at a time: the block's results stand in the first-level cache until
// they are written to all targets, so every source is read once and every target written once,
// however many there are, and it does not matter which of them are the same memory.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/reduction/table.h"
#include RINGLET_SIMD_HEADER
#include "kernels/reduction.h"

namespace ringlet::impl {

inline constexpr std::size_t kLine = 64;

/// Writes whole lines to `to`, which begins one, past the caches; what is left over as usual.
template <class S>
void stream_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t whole = bytes / kLine * kLine;
  for (std::size_t i = 0; i < whole; i += kLine) S::line(to + i, from + i);
  std::memcpy(to + whole, from + whole, bytes - whole);
}

template <class S, class T>
void store(const T* results, std::int64_t count, T* to, Stores stores) {
  const auto bytes = static_cast<std::size_t>(count) * sizeof(T);
  if (stores == Stores::streaming && reinterpret_cast<std::uintptr_t>(to) % kLine == 0) {
    stream_bytes<S>(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(results),
                    bytes);
  } else if (stores == Stores::across) {
    S::across(to, results, bytes);
  } else {
    std::memcpy(to, results, bytes);
  }
}

/// sum = combine(x_0, x_1, ...) of the elements [at, at + count).
template <class S, class T, class Combine>
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
template <class S, class T, class Combine>
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

template <class S, class T, class Combine>
void reduce_range(const ReduceArguments& a, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kBlock = 512, kLongBlock = 2048;  // the instruction takes long to start
  using Accumulator = reduction::Accumulator<T>;
  if constexpr (std::is_same_v<T, Accumulator>) {
    const bool at_once =
        a.sources <= 2 && a.targets <= 2 && a.divisor == 1 && a.stores == Stores::cached;
    if (at_once) return reduce_at_once<S, T, Combine>(a, begin, end);
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
    combine_block<S, T, Combine>(a, at, count, sum);
    const T* rounded = results;
    if constexpr (std::is_same_v<T, Accumulator>) {
      rounded = sum;
    } else {
      for (std::int64_t i = 0; i < count; ++i) results[i] = reduction::round_to<T>(sum[i]);
    }
    for (int k = 0; k < a.targets; ++k) {
      const Stores stores = a.stores == Stores::across && k == 0 ? Stores::cached : a.stores;
      store<S>(rounded, count, static_cast<T*>(a.ys[k]) + at, stores);
    }
  }
  if (streaming) S::end();
}

/// As many as the set converts by instructions of its own. Returns the first that is left.
template <class S, class From, class To>
std::int64_t convert([[maybe_unused]] const From* from, [[maybe_unused]] To* to, std::int64_t i,
                     [[maybe_unused]] std::int64_t end) {
  if constexpr (requires { &S::narrow_half; } && !std::is_same_v<From, Half>) {
    for (; i + S::kWidth <= end; i += S::kWidth) {
      if constexpr (std::is_same_v<From, BFloat16>) {
        simd::store<S>(to + i, simd::load<S>(&from[i].bits));
      } else if constexpr (std::is_same_v<To, BFloat16>) {
        simd::store<S>(&to[i].bits, simd::load<S>(from + i));
      } else {
        S::narrow_half(from + i, &to[i].bits);
      }
    }
  }
  return i;
}

/// y[i] = x[i] as y's type.
template <class S, class From, class To>
void cast_range(const void* x, void* y, std::int64_t begin, std::int64_t end) {
  const auto* __restrict from = static_cast<const From*>(x);
  auto* __restrict to = static_cast<To*>(y);
  for (std::int64_t i = convert<S>(from, to, begin, end); i < end; ++i) {
    to[i] = reduction::round_to<To>(reduction::load(from[i]));
  }
}

template <class S>
ReduceFunction find_reduction(ReduceOp op, DType dtype) {
  ReduceFunction function = nullptr;
  reduction::visit(op, dtype, [&]<class T, class Combine>(T, Combine) {
    function = &reduce_range<S, T, Combine>;
  });
  return function;
}

template <class S>
CastFunction find_cast(DType from, DType to) {
  CastFunction function = nullptr;
  reduction::visit_cast(
      from, to, [&]<class From, class To>(From, To) { function = &cast_range<S, From, To>; });
  return function;
}

ReductionLoops loops_of(RINGLET_SET) {
  return {find_reduction<RINGLET_SIMD>, find_cast<RINGLET_SIMD>};
}

}  // namespace ringlet::impl
