// Instead of comm/nccl_*.cc in a build without CUDA.
#include "base/error.h"
#include "comm/transport/nccl/nccl_transport.h"

namespace ringlet::comm {

std::unique_ptr<NcclGroup> open_nccl() {
  throw DeviceError(
      "NCCL cannot be used: this build of Ringlet has no CUDA; use --transport local");
}

std::string nccl_version() { return {}; }

}  // namespace ringlet::comm
