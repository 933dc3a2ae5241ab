// Whether a library's fused ReLU lets NaN through, as elementwise.h says. Its documentation leaves
// that open, and a network whose numbers are broken must not look as if it had learnt nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "kernels/tensor.h"

namespace ringlet {

class CudaStream;

struct ProbedOutput {
  std::int64_t count = 0;
  DType dtype = DType::f32;
};

/// Asks the device: launch(inputs, output) with inputs of so many floats of any type, all NaN.
/// False where the output is no NaN, where it cannot be launched, and while the stream is captured.
/// Blocks the host, and allocates for as long as it takes.
bool lets_nan_through(CudaStream& stream, std::span<const std::int64_t> input_counts,
                      const ProbedOutput& result,
                      const std::function<bool(std::span<void* const>, void*)>& launch);

}  // namespace ringlet
