// The GPUs of this machine, for messages, `ringlet devices` and the choice of a default. In a build
// without CUDA there are none, and `why_none` says so.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/device.h"

struct CUstream_st;  // cudaStream_t

namespace ringlet {

struct CudaDeviceInfo {
  std::string name;          ///< "NVIDIA H200"
  int capability_major = 0;  ///< compute capability 9.0: 9
  int capability_minor = 0;  ///< and 0
  int multiprocessors = 0;
  std::int64_t memory_bytes = 0;
  std::optional<std::int64_t> free_bytes;  ///< where look_at_each() asked for it
  std::string why_not;  ///< it cannot run our kernels, as look_at_each() found, with the remedy
  std::vector<bool> peer_access;  ///< [other]: whether this GPU reads and writes the other's memory
};

/// Versions as NVIDIA counts them ("13.0", "9.19.0"); empty where the library is not there.
struct CudaVersions {
  std::string driver;   ///< newest CUDA that the driver knows
  std::string runtime;  ///< CUDA run time that Ringlet was built with
  std::string cublas;   ///< cuBLASLt as found at run time
  std::string cudnn;    ///< cuDNN as found at run time
};

struct CudaSurvey {
  std::vector<CudaDeviceInfo> devices;  ///< in CUDA's order, after CUDA_VISIBLE_DEVICES
  CudaVersions versions;
  std::string why_none;  ///< when there is no device: one clause with the remedy
};

/// Lets CUDA load all kernels when a device is opened, not each at its first launch, unless the
/// user has set CUDA_MODULE_LOADING. For replicas that are threads and wait for each other on their
/// GPUs, where such a first launch may wait for ever. Before the process's first call of CUDA, and
/// before its threads.
void load_cuda_kernels_eagerly() noexcept;

/// Asks the driver, and makes no context on any GPU. Never throws: what cannot be found out is left
/// empty.
CudaSurvey survey_cuda();

/// Finds out how much memory is free on each of the GPUs, and whether it can run our kernels. That
/// makes a context on it, which takes some hundred MiB there until the process ends, and which a
/// GPU in exclusive mode has for one process alone: for who looks at all GPUs, and not for a run,
/// which has its own. Never throws.
void look_at_each(CudaSurvey& survey);

/// The number of GPUs; 0 without a driver or without CUDA in this build. Cheaper than a survey.
int cuda_device_count();

/// Whether GPU `device` reads and writes the memory of GPU `other`; false where the driver does not
/// say.
bool cuda_reaches(int device, int other);

/// The GPU's own number, which no other GPU has: "GPU-6f21..." as nvidia-smi -L shows it. Throws
/// DeviceError.
std::string cuda_uuid(int device);

/// The CUDA stream behind a stream of a GPU's, for libraries that launch by themselves; makes that
/// GPU the calling thread's current one. Throws ContractError for another device's stream.
CUstream_st* cuda_stream_of(Stream& stream);

/// Throws DeviceError where the device cannot be used. See open_device().
std::unique_ptr<Device> open_cuda_device(DeviceId id, const DeviceOptions& options);

}  // namespace ringlet
