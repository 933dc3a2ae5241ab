// Words of other programs (torchrun, mpirun, nccl-tests, PyTorch's examples) for what has another
// name here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ringlet::app {

/// What to write in place of `word`: "--device cuda --replicas N" for "--gpus". Empty where no
/// other program calls it so, or where `known`, the words that are right here, lacks ours.
std::string ours_for(std::string_view word, const std::vector<std::string>& known);

}  // namespace ringlet::app
