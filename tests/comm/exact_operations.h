// Inputs and exact results, to the last bit, for tests that run every strategy with every operation
// on every type.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "comm/all_reduce/all_reduce.h"
#include "kernels/memory.h"
#include "kernels/reduction.h"
#include "kernels/tensor.h"

namespace ringlet::comm {

template <class T>
T narrowed(double x) {
  return reduction::round_to<T>(static_cast<reduction::Accumulator<T>>(x));
}

/// Whole, and so small that sums over sixteen ranks are exact in eight bits; with i they repeat
/// after kExactPeriod.
inline constexpr std::size_t kExactPeriod = 15;
inline double exact_input(int rank, std::size_t i) {
  return static_cast<double>((i * 5 + static_cast<std::size_t>(rank) * 3) % kExactPeriod) - 7;
}

inline double exact_result(ReduceOp op, int ranks, std::size_t i) {
  double result = exact_input(0, i);
  for (int rank = 1; rank < ranks; ++rank) {
    const double next = exact_input(rank, i);
    if (op == ReduceOp::min) result = std::min(result, next);
    if (op == ReduceOp::max) result = std::max(result, next);
    if (op == ReduceOp::sum || op == ReduceOp::mean) result += next;
  }
  return op == ReduceOp::mean ? static_cast<double>(static_cast<float>(result / ranks)) : result;
}

/// Sleeps now and then, so that ranks come to an exchange in any order.
class Delay {
 public:
  explicit Delay(int seed) : random_(static_cast<unsigned>(seed)) {}
  void now_and_then() {
    if (random_() % 8 == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % 300));
    }
  }

 private:
  std::mt19937 random_;
};

/// Reduces exact_input() on one rank of `ranks`, in badly aligned memory of `allocator`. Expects
/// exact_result(), and that nothing beside the data was touched.
template <class T>
void expect_exact(AllReduce& reduce, Stream& stream, Allocator& allocator, int rank, int ranks,
                  ReduceOp op, std::size_t count) {
  constexpr std::size_t kBefore = 1, kAfter = 3;  // the data begin off any line or vector
  const T guard = narrowed<T>(99);
  std::vector<T> expected(kBefore + count + kAfter, guard);
  const std::size_t bytes = expected.size() * sizeof(T);
  const Buffer buffer(allocator, static_cast<std::int64_t>(bytes));
  auto* const memory = static_cast<T*>(buffer.data());
  std::fill_n(memory, expected.size(), guard);
  std::array<T, kExactPeriod> inputs{}, results{};
  for (std::size_t i = 0; i < kExactPeriod; ++i) {
    inputs[i] = narrowed<T>(exact_input(rank, i));
    results[i] = narrowed<T>(exact_result(op, ranks, i));
  }
  for (std::size_t i = 0; i < count; ++i) memory[kBefore + i] = inputs[i % kExactPeriod];
  reduce.run(stream, View(memory + kBefore, {static_cast<std::int64_t>(count)}, DTypeOf<T>::value),
             op);
  for (std::size_t i = 0; i < count; ++i) expected[kBefore + i] = results[i % kExactPeriod];
  EXPECT_EQ(std::memcmp(memory, expected.data(), bytes), 0)
      << reduce.name() << " rank " << rank << " " << name_of(op) << " of " << count << " "
      << ringlet::name_of(DTypeOf<T>::value);
}

}  // namespace ringlet::comm
