// Opening a file to read text from it as a stream.
#pragma once

#include <filesystem>
#include <fstream>

namespace ringlet::train {

/// Throws FileError naming the file: not there, a folder, not readable.
std::ifstream open_input(const std::filesystem::path& file);

}  // namespace ringlet::train
