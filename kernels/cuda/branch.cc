#include "kernels/branch.h"

#include "kernels/cuda/cuda_device.h"

namespace ringlet {

namespace {

// Of less, either side takes a few microseconds, which is what another edge of the graph may cost.
// An estimate, not measured.
constexpr double kWorthwhile = 16e6;

/// Null for a stream that is none of CUDA's.
CudaStream* cuda_stream(Stream& stream) {
  const bool is_cuda = stream.device().id().kind == DeviceKind::cuda;
  return is_cuda ? static_cast<CudaStream*>(&stream) : nullptr;
}

}  // namespace

Branch::Branch(Stream& stream, double flops) : stream_(nullptr) {
  CudaStream* const cuda = cuda_stream(stream);
  if (cuda == nullptr || flops < kWorthwhile || !cuda->begin_branch()) return;
  stream_ = &stream;
}

Branch::~Branch() {
  if (stream_ != nullptr) cuda_stream(*stream_)->end_branch();
}

void Branch::join(Stream& stream) {
  if (CudaStream* const cuda = cuda_stream(stream)) cuda->join_branch();
}

}  // namespace ringlet
