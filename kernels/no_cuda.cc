// Instead of kernels/cuda in a build without CUDA.
#include <string>

#include "base/error.h"
#include "kernels/branch.h"
#include "kernels/cuda_devices.h"

namespace ringlet {

namespace {

constexpr const char* kWhy = "this build of Ringlet has no CUDA: " RINGLET_WHY_NO_CUDA;

}  // namespace

void load_cuda_kernels_eagerly() noexcept {}

CudaSurvey survey_cuda() { return {{}, {}, kWhy}; }

void look_at_each(CudaSurvey& /*survey*/) {}

int cuda_device_count() { return 0; }

bool cuda_reaches(int /*device*/, int /*other*/) { return false; }

std::string cuda_uuid(int device) {
  throw DeviceError("cuda:" + std::to_string(device) + " cannot be used: " + kWhy);
}

CUstream_st* cuda_stream_of(Stream& stream) {
  throw ContractError("cuda_stream_of: " + stream.device().id().to_string() + " is no GPU");
}

std::unique_ptr<Device> open_cuda_device(DeviceId id, const DeviceOptions&) {
  throw DeviceError("device " + id.to_string() + " cannot be used: " + kWhy + "; use --device cpu");
}

Branch::Branch(Stream& /*stream*/, double /*flops*/) : stream_(nullptr) {}
Branch::~Branch() = default;
void Branch::join(Stream& /*stream*/) {}

}  // namespace ringlet
