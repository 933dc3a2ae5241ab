// GPUs that need not be there, as cuDNN 9 writes them down: it plans for one that is described to
// it as well as for one that is there.
#pragma once

#include <string>

namespace ringlet::test {

struct DescribedGpu {
  const char* name;
  int capability;  // 900 is 9.0
  int multiprocessors;
  int shared_memory;  // bytes that a block may have
};

inline constexpr DescribedGpu kA100{"A100", 800, 108, 166912}, kH100{"H100", 900, 132, 232448},
    kH200{"H200", 900, 132, 232448};

inline std::string json_of(const DescribedGpu& gpu) {
  return R"({"deviceName":")" + std::string(gpu.name) + R"(","deviceVer":)" +
         std::to_string(gpu.capability) + R"(,"multiProcessorCount":)" +
         std::to_string(gpu.multiprocessors) + R"(,"maxSharedMemoryPerBlockOptin":)" +
         std::to_string(gpu.shared_memory) +
         R"(,"driverVer":13000,"cudaDeviceId":0,"pciDeviceId":0,"isTccDriver":0,
             "totalGlobalMem":80000000000,"maxGridSize":[2147483647,65535,65535],
             "maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"warpSize":32,
             "maxSharedMemoryPerBlock":49152,"reservedSharedMemoryPerBlock":1024,
             "maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,
             "maxThreadsPerSM":2048,"supportCoopLaunch":1,"smClockRateKHz":1410000,
             "memClockRateKHz":1593000,"l2CacheSize":41943040})";
}

}  // namespace ringlet::test
