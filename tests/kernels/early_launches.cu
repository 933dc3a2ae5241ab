#include "kernels/cuda/cuda_grid.cuh"
#include "tests/kernels/early_launches.h"

namespace ringlet::test {

namespace {

constexpr std::int64_t kThreads = 256;

struct NextRound {
  float* round;
  RINGLET_HOST_DEVICE void operator()(std::int64_t) const { *round += 1; }
};

struct WriteLate {
  const float* round;
  float* values;
  int turns;
  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    auto state = static_cast<std::uint32_t>(i) + 1;
    RINGLET_ROLLED
    for (int k = 0; k < turns; ++k) {  // Marsaglia's xorshift: never 0, which no compiler knows
      state ^= state << 13U;
      state ^= state >> 17U;
      state ^= state << 5U;
    }
    values[i] = state == 0 ? 0 : *round;
  }
};

struct ReadAll {
  const float* round;
  const float* values;
  float* counts;
  std::int64_t count, threads, row;
  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    float wrong = 0;
    RINGLET_ROLLED
    for (std::int64_t k = i; k < count; k += threads) wrong += values[k] == *round ? 0.0F : 1.0F;
    counts[i] += wrong;
    counts[row + i] += 1;
  }
};

}  // namespace

void next_round(CudaStream& stream, const View& round) {
  impl::CudaGrid(stream).for_each("next_round", 1, NextRound{round.f32()});
}

void write_late(CudaStream& stream, const ConstView& round, int turns, const View& values) {
  impl::CudaGrid(stream).for_each("write_late", values.count(),
                                  WriteLate{round.f32(), values.f32(), turns});
}

void read_all(CudaStream& stream, const ConstView& round, const ConstView& values,
              std::int64_t blocks, const View& counts) {
  const std::int64_t threads = kThreads * blocks;
  impl::CudaGrid(stream).for_each(
      "read_all", threads,
      ReadAll{round.f32(), values.f32(), counts.f32(), values.count(), threads, counts.shape()[1]});
}

}  // namespace ringlet::test
