// Grids for the test of early launches (early_launches_test.cc), launched as every kernel of
// Ringlet's is: one that takes long to write its results, and one that comes early and reads them.
#pragma once

#include <cstdint>

#include "kernels/cuda/cuda_device.h"
#include "kernels/tensor.h"

namespace ringlet::test {

/// Adds one to round [1]. One block, so it may come early itself.
void next_round(CudaStream& stream, const View& round);

/// Writes the round's number everywhere, in blocks of 256 threads. Each thread computes `turns`
/// steps before it stores.
void write_late(CudaStream& stream, const ConstView& round, int turns, const View& values);

/// `blocks` blocks of 256 threads read all of `values`. counts [2, 256 * blocks or more]: each
/// thread adds to the first row how many were not the round's number, and one to the second.
void read_all(CudaStream& stream, const ConstView& round, const ConstView& values,
              std::int64_t blocks, const View& counts);

}  // namespace ringlet::test
