// Faults that a GPU or its libraries might have in what can be switched off (base/switches.h).
// RINGLET_STAND_IN_FAULT names one. Results are then wrong where that is in use, and right with it
// switched off, so that a red test can be narrowed down as scripts/gpu_check does.
//
//   early-launches   a kernel that is launched early begins before the kernel in front of it
//   captures         a launch of a graph leaves out its last kernel
//   branches         where lines of a graph join, the one that was called first is not waited for
//   fused            a library does not add the bias, and takes its gradient for 0
//   narrow-sums      gradients of filters from bf16 and f16 are not written
//   nccl-memory      a sum of what lies in memory of NCCL's own leaves out the last rank
//   nccl-threads     so does a captured sum that a thread of NCCL's own puts on its stream
#pragma once

namespace ringlet::stand_in {

/// Reads the environment, which nobody may write meanwhile.
bool has_fault(const char* name);

}  // namespace ringlet::stand_in
