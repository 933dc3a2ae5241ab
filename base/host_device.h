// Marks the small functions that CPU loops and device kernels share, for compilers that need it.
// RINGLET_ROLLED stands before a loop of a device kernel that turns once or a few times: unrolled,
// it would begin with a division for the number of turns. RINGLET_UNROLLED stands before one that
// is to leave no index, so that what it counts through is in registers. A CPU's compiler decides
// for itself.
#pragma once

#ifdef __CUDACC__
#define RINGLET_HOST_DEVICE __host__ __device__
#else
#define RINGLET_HOST_DEVICE
#endif

#ifdef __CUDA_ARCH__  // the device's half of what nvcc compiles
#define RINGLET_ROLLED _Pragma("unroll 1")
#define RINGLET_UNROLLED _Pragma("unroll")
#else
#define RINGLET_ROLLED
#define RINGLET_UNROLLED
#endif
