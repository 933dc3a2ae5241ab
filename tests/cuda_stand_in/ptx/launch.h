// The kernels that nvcc compiled into this program; they register themselves when it starts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/cuda_stand_in/ptx/program.h"

namespace ringlet::ptx {

/// Mangled names, and what stands in PTX from ".entry" on.
std::vector<std::pair<std::string, std::string>> registered_kernels();

/// Throws std::invalid_argument where something in it is not known.
Program program_of(const std::string& name);

}  // namespace ringlet::ptx
