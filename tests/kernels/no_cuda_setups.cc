// The operations' tests in a build without CUDA.
#include "tests/kernels/harness.h"

namespace ringlet::test {

std::vector<Setup> cuda_setups() { return {}; }

}  // namespace ringlet::test
