// Where the files are that tests read. A test program that was taken to another machine finds them
// in the folder that RINGLET_CHECKOUT names in the environment.
#pragma once

#include <string>

namespace ringlet::testing {

/// The path of a file of the checkout, for example "docs/all-reduce.md".
std::string checkout(const std::string& file);

/// The path of a file of tests/testdata, for example "oracle/init.safetensors".
std::string testdata(const std::string& file);

}  // namespace ringlet::testing
