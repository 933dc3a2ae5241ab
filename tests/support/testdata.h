// Where the files of tests/testdata are.
#pragma once

#include <string>

namespace ringlet::testing {

/// The path of `file`, for example "oracle/init.safetensors".
std::string testdata(const std::string& file);

}  // namespace ringlet::testing
