// Marks the small functions that CPU loops and device kernels share, for compilers that need it.
#pragma once

#ifdef __CUDACC__
#define RINGLET_HOST_DEVICE __host__ __device__
#else
#define RINGLET_HOST_DEVICE
#endif
