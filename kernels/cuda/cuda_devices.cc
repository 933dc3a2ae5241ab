#include "kernels/cuda_devices.h"

#include <cuda_runtime_api.h>

#include <cstdlib>

#include "base/error.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/libraries.h"

namespace ringlet {

namespace {

/// 13000 is "13.0".
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

int driver_version() {
  int version = 0;
  return cudaDriverGetVersion(&version) == cudaSuccess ? version : 0;
}

/// Why cudaGetDeviceCount gave `result` or no device, with the remedy.
std::string explain_none(cudaError_t result) {
  const std::string needed = version_text(CUDART_VERSION);
  if (driver_version() == 0) {
    return "no NVIDIA driver is loaded on this machine; install one that knows CUDA " + needed;
  }
  if (result == cudaErrorInsufficientDriver) {
    return "the NVIDIA driver knows CUDA " + version_text(driver_version()) +
           " and Ringlet was built with " + needed + "; update the driver";
  }
  if (result != cudaSuccess && result != cudaErrorNoDevice) {
    return std::string(cudaGetErrorString(result)) + " (" + cudaGetErrorName(result) + ")";
  }
  return "the driver sees no GPU; CUDA_VISIBLE_DEVICES may hide it";
}

/// Why our kernels cannot run on the current GPU, with the remedy; empty where they can.
std::string why_no_kernels(int device) {
  const auto missing = static_cast<cudaError_t>(impl::kernel_code().missing);
  if (missing == cudaSuccess) return {};
  if (missing == cudaErrorUnsupportedPtxVersion) {
    return "its driver knows CUDA " + version_text(driver_version()) +
           " and cannot translate the kernels of this build, which " +
           version_text(CUDART_VERSION) + " compiled; update the driver";
  }
  if (missing != cudaErrorNoKernelImageForDevice && missing != cudaErrorInvalidDeviceFunction) {
    return std::string(cudaGetErrorString(missing)) + " (" + cudaGetErrorName(missing) + ")";
  }
  int major = 0, minor = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  constexpr int kLeast = 8;  // of tensor cores for bf16, and of copies beside the work
  const std::string digits[] = {std::to_string(major), std::to_string(minor)};
  const std::string capability = digits[0] + "." + digits[1];
  if (major < kLeast) {
    return "its compute capability is " + capability +
           ", and Ringlet needs 8.0 or more; take another GPU";
  }
  return "this build has no kernels for its compute capability, " + capability +
         "; build with CUDAARCHS=" + digits[0] + digits[1];
}

CudaDeviceInfo describe(int device, int count) {
  CudaDeviceInfo info;
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, device) == cudaSuccess) {
    info.name = properties.name;
    info.capability_major = properties.major;
    info.capability_minor = properties.minor;
    info.multiprocessors = properties.multiProcessorCount;
    info.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  }
  for (int other = 0; other < count; ++other) {
    info.peer_access.push_back(cuda_reaches(device, other));
  }
  return info;
}

cudaError_t count_devices(int& count) {
  count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess) {
    cudaGetLastError();  // asking is no failure of what comes later
    count = 0;
  }
  return result;
}

}  // namespace

void load_cuda_kernels_eagerly() noexcept {
  constexpr int kKeep = 0;                        // what the user has set
  setenv("CUDA_MODULE_LOADING", "EAGER", kKeep);  // NOLINT(concurrency-mt-unsafe): no threads yet
}

CudaSurvey survey_cuda() {
  CudaSurvey survey;
  int count = 0;
  const cudaError_t result = count_devices(count);
  for (int device = 0; device < count; ++device) survey.devices.push_back(describe(device, count));
  if (count == 0) survey.why_none = explain_none(result);
  if (driver_version() != 0) survey.versions.driver = version_text(driver_version());
  survey.versions.runtime = version_text(CUDART_VERSION);
  survey.versions.cublas = cublas_version();
  survey.versions.cudnn = cudnn_version();
  cudaGetLastError();
  return survey;
}

void look_at_each(CudaSurvey& survey) {
  int before = 0;
  cudaGetDevice(&before);
  for (std::size_t i = 0; i < survey.devices.size(); ++i) {
    const auto device = static_cast<int>(i);
    std::size_t free = 0, total = 0;
    if (cudaSetDevice(device) != cudaSuccess) continue;
    if (cudaMemGetInfo(&free, &total) != cudaSuccess) continue;
    survey.devices[i].free_bytes = static_cast<std::int64_t>(free);
    survey.devices[i].why_not = why_no_kernels(device);
  }
  if (!survey.devices.empty()) cudaSetDevice(before);
  cudaGetLastError();
}

int cuda_device_count() {
  int count = 0;
  count_devices(count);
  return count;
}

bool cuda_reaches(int device, int other) {
  if (other == device) return true;
  int possible = 0;
  if (cudaDeviceCanAccessPeer(&possible, device, other) != cudaSuccess) {
    cudaGetLastError();  // asking is no failure of what comes later
    return false;
  }
  return possible != 0;
}

std::string cuda_uuid(int device) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {  // 8-4-4-4-12 digits
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(properties.uuid.bytes[i]);
    text += {kDigits[byte / 16], kDigits[byte % 16]};
  }
  return text;
}

CUstream_st* cuda_stream_of(Stream& stream) {
  require(stream.device().id().kind == DeviceKind::cuda, "cuda_stream_of", "takes a GPU's stream");
  return static_cast<CudaStream&>(stream).handle();
}

std::unique_ptr<Device> open_cuda_device(DeviceId id, const DeviceOptions& options) {
  int count = 0;
  const cudaError_t result = count_devices(count);
  if (count == 0) {
    throw DeviceError("device " + id.to_string() + " cannot be used: " + explain_none(result) +
                      ", or use --device cpu");
  }
  if (id.index >= count) {
    const std::string last = count == 1 ? "" : " to cuda:" + std::to_string(count - 1);
    throw DeviceError(
        "device " + id.to_string() + " does not exist: there " +
        (count == 1 ? "is cuda:0" : "are cuda:0" + last) +
        "; several replicas share one as --devices cuda:0,cuda:0, and CUDA_VISIBLE_DEVICES "
        "hides and renumbers them");
  }
  check_cuda(cudaSetDevice(id.index), "cudaSetDevice");
  if (const std::string why = why_no_kernels(id.index); !why.empty()) {
    throw DeviceError("device " + id.to_string() + " cannot be used: " + why +
                      ", or use --device cpu");
  }
  return std::make_unique<CudaDevice>(id, options);
}

}  // namespace ringlet
