#include "base/files/input_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/files/atomic_file.h"

namespace ringlet {

namespace fs = std::filesystem;

std::ifstream open_input(const fs::path& file) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (status.type() == fs::file_type::none) {  // a link that leads to itself, say
    throw FileError(file.string() + ": cannot be opened: " + error.message() +
                    "; check its permissions");
  }
  if (!fs::exists(status))
    throw FileError(file.string() + ": there is no such file; check the path");
  if (fs::is_directory(status))
    throw FileError(file.string() + " is a folder; name the file in it");
  if (!fs::is_regular_file(status))
    throw FileError(file.string() + ": is not a regular file; name a file");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw FileError(file.string() + " cannot be opened; check its permissions");
  return stream;
}

std::string read_text(const fs::path& file, std::uintmax_t most) {
  std::ifstream stream = open_input(file);
  std::error_code error;
  const std::uintmax_t stored = fs::file_size(file, error);
  const auto refuse = [&](std::uintmax_t bytes) {
    throw FileError(fmt::format("{} has {} bytes; such a file has at most {}; is it another one?",
                                file.string(), bytes, most));
  };
  if (!error && stored > most) refuse(stored);
  // The system's own files (/proc) have more than they say. So one byte more than is taken is read.
  std::string text;
  for (std::size_t got = 1; got > 0 && text.size() <= most;) {
    constexpr std::size_t kPiece = 1 << 16;
    const std::size_t before = text.size();
    text.resize(before + std::min<std::uintmax_t>(kPiece, most + 1 - before));
    stream.read(text.data() + before, static_cast<std::streamsize>(text.size() - before));
    got = static_cast<std::size_t>(stream.gcount());
    text.resize(before + got);
  }
  if (stream.bad()) throw FileError(file.string() + " cannot be read; check the disk");
  if (text.size() > most) refuse(text.size());
  return text;
}

}  // namespace ringlet
