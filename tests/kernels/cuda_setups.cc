// The operations' tests in a build with CUDA.
#include "tests/kernels/harness.h"

namespace ringlet::test {

std::vector<Setup> cuda_setups() {
  return {{Layout::nchw, InstructionSet::automatic, DeviceKind::cuda},
          {Layout::nhwc, InstructionSet::automatic, DeviceKind::cuda}};
}

}  // namespace ringlet::test
