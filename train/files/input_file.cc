#include "train/files/input_file.h"

#include <string>
#include <system_error>

#include "train/files/atomic_file.h"

namespace ringlet::train {

std::ifstream open_input(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error))
    throw FileError(file.string() + ": there is no such file; check the path");
  if (std::filesystem::is_directory(file, error))
    throw FileError(file.string() + " is a folder; name the file in it");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw FileError(file.string() + " cannot be opened; check its permissions");
  return stream;
}

}  // namespace ringlet::train
