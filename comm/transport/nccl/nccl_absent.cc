// In place of comm/nccl_*.cc in a build without CUDA.
#include "comm/transport/nccl/nccl_transport.h"
#include "kernels/error.h"

namespace ringlet::comm {

std::unique_ptr<NcclGroup> open_nccl() {
  throw DeviceError(
      "NCCL cannot be used: this build of Ringlet has no CUDA; use --transport local");
}

std::string nccl_version() { return {}; }

}  // namespace ringlet::comm
