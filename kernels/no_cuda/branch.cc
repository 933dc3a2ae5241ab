// In place of kernels/cuda/branch.cc in a build without CUDA.
#include "kernels/branch.h"

namespace ringlet {

Branch::Branch(Stream& /*stream*/, double /*flops*/) : stream_(nullptr) {}
Branch::~Branch() = default;
void Branch::join(Stream& /*stream*/) {}

}  // namespace ringlet
