// The vector kernels of one instruction set, as pointers: all that the rest of the program sees of
// them.
#pragma once

#include <cstdint>

#include "base/instruction_set.h"
#include "kernels/cpu/lanes/arguments.h"

namespace ringlet::lanes {

struct KernelTable {
  int width;  ///< floats in a vector, a divisor of 16

  int gather_vectors;  ///< largest tile of gather(): vectors of samples x outputs
  int gather_outputs;
  int filter_outputs;  ///< largest tile of filter(): outputs x taps
  int filter_taps;
  int dense_vectors;  ///< largest tile of dense_*(): vectors x outputs
  int dense_outputs;
  int rows_outputs;    ///< the same for dense_rows()
  int pooled_outputs;  ///< largest tile of pooled()

  // Tiles are given by their sizes, 1 up to the largest.
  void (*gather)(const GatherArguments&, int vectors, int outputs);
  void (*filter)(const FilterArguments&, int outputs, int taps);
  void (*dense_packed)(const DenseArguments&, int vectors, int outputs);  ///< w_output is 1
  void (*dense_lanes)(const DenseArguments&, int vectors, int outputs);   ///< w_output is 16
  void (*dense_rows)(const DenseArguments&, int vectors, int outputs);    ///< any w_output
  void (*pooled)(const PooledArguments&, int outputs);
  void (*unpool)(const UnpoolArguments&);

  void (*copy_columns)(const ColumnArguments&);
  // Winograd's transforms (winograd_transforms.h).
  void (*input_to_points)(const WinogradTile&);
  void (*gradient_to_points)(const WinogradTile&);
  void (*points_to_output)(const WinogradTile&);
  void (*filters_to_points)(const WinogradFilters&);
  void (*points_to_filters)(const WinogradFilters&);

  void (*avg_pool_forward)(const PoolArguments&);
  void (*avg_pool_backward)(const PoolArguments&);  ///< y is dy, x is dx
  void (*max_pool_forward)(const PoolArguments&);

  /// y[i] = x[i] + b, `count` floats, a multiple of 16.
  void (*add_number)(const float* x, float b, float* y, std::int64_t count);
  /// Sum of `planes` planes of `count` floats (a multiple of 16), `stride` apart.
  float (*sum)(const float* x, std::int64_t planes, std::int64_t stride, std::int64_t count);
  /// [rows][16] -> [16][stride], columns 0 ... rows - 1.
  void (*transpose)(const float* x, std::int64_t rows, float* y, std::int64_t stride);
  /// Multiplies and adds in registers, for bench/fma_peak.h.
  FmaChainResult (*fma_chain)(std::int64_t rounds);
};

/// One for each file that is compiled for an instruction set of its own.
const KernelTable& kernels_of(PortableSet);
const KernelTable& kernels_of(NeonSet);
const KernelTable& kernels_of(Avx2Set);
const KernelTable& kernels_of(Avx512Set);

}  // namespace ringlet::lanes
