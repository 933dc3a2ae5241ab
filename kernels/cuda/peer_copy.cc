#include "kernels/cuda/peer_copy.h"

#include <cuda_runtime_api.h>

#include "kernels/cuda/cuda_error.h"

namespace ringlet::impl {

void copy_from_device(CudaStream& stream, DeviceId from, const ConstView& x, const View& y) {
  if (x.bytes() == 0) return;
  check_cuda(cudaMemcpyPeerAsync(y.data(), stream.device().id().index, x.data(), from.index,
                                 static_cast<std::size_t>(x.bytes()), stream.handle()),
             "cudaMemcpyPeerAsync");
}

}  // namespace ringlet::impl
