// What can be turned off by a variable of the environment (NAME=off), should it make trouble on a
// GPU that nobody has tried. scripts/gpu_check turns them off one by one where tests fail.
#pragma once

namespace ringlet {

/// Kernels begin before the one in front of them has ended (kernels/cuda/cuda_grid.cuh).
inline constexpr const char* kEarlyLaunches = "RINGLET_EARLY_LAUNCHES";
/// Steps are captured as graphs. What --graph asks for is then not done.
inline constexpr const char* kCaptures = "RINGLET_CAPTURES";
/// Work that need not wait for what follows has a stream of its own in a graph (kernels/branch.h).
inline constexpr const char* kBranches = "RINGLET_BRANCHES";
/// Libraries add biases, apply ReLU and sum the gradients of biases within a product.
inline constexpr const char* kFused = "RINGLET_FUSED";
/// Gradients of filters from bf16 and f16 are summed by a kernel of Ringlet's own
/// (kernels/grid/narrow_filter_gradient.h), not by cuDNN from factors widened to f32.
inline constexpr const char* kNarrowSums = "RINGLET_NARROW_SUMS";
/// Gradients lie in memory of NCCL's own, where it gives some.
inline constexpr const char* kNcclMemory = "RINGLET_NCCL_MEMORY";
/// NCCL puts what is captured on its stream from threads of its own, so that no call can hang. Off:
/// its calls do that themselves (ncclConfig_t::blocking).
inline constexpr const char* kNcclThreads = "RINGLET_NCCL_THREADS";

/// Reads the environment, which nobody may write meanwhile.
bool is_switched_off(const char* name);

}  // namespace ringlet
