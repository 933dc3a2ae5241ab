// Measures the most multiply-adds that this machine does in a second, which a kernel's speed is
// compared with: chains of independent fused multiply-adds that stay in registers, on 1 ... T
// threads.
//
// The clock of a processor depends on what else runs. So measure the peak in the same process,
// right before and after what is compared with it.
#pragma once

#include "kernels/device.h"

namespace ringlet::bench {

struct FmaPeakOptions {
  InstructionSet isa = InstructionSet::automatic;
  int threads = 1;
  double seconds = 0.002;  ///< of one measurement: short, to fit between other processes
  int repeats = 20;        ///< the best counts
};

/// Billions of f32 operations a second, a multiply-add counting as two, all threads together.
/// Where the instruction set has no fused multiply-add, a product and a sum stand for it. Throws
/// DeviceError when the processor has not got the instruction set.
double measure_fma_peak(const FmaPeakOptions& options = {});

}  // namespace ringlet::bench
