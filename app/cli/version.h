// What --version prints.
#pragma once

#include <map>
#include <string>

namespace ringlet::app {

/// "ringlet 0.1.0"; or, for programs, a JSON object with the commit, the compiler, CUDA (null where
/// the build has none) and the instruction set that CPU kernels use here.
std::string version_text(bool as_json);

/// What files of measurements and of runs say of the build: commit, compiler, build_type, as far as
/// they are known.
std::map<std::string, std::string> build_facts();

}  // namespace ringlet::app
