// Opening a file to read text from it. Only a regular file is opened: a pipe that nobody writes
// into would be waited for, and a device may never end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace ringlet {

/// Throws FileError naming the file: not there, no regular file, not readable.
std::ifstream open_input(const std::filesystem::path& file);

/// The whole text. Throws FileError as above, and where the file has more than `most` bytes.
std::string read_text(const std::filesystem::path& file, std::uintmax_t most);

}  // namespace ringlet
