// Where the files are that tests read, and what was built beside them. No test program holds these
// paths, so that those of two checkouts are the same bytes. One that was taken to another machine
// finds the files in the folder that RINGLET_CHECKOUT names in the environment.
#pragma once

#include <string>

namespace ringlet::testing {

/// The path of a file of the checkout, for example "docs/all-reduce.md".
std::string checkout(const std::string& file);

/// The path of a file of tests/testdata, for example "oracle/init.safetensors".
std::string testdata(const std::string& file);

/// The path of a file of the build's folder, for example "bin/ringlet".
std::string built(const std::string& file);

}  // namespace ringlet::testing
