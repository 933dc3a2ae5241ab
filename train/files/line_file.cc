#include "train/files/line_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>
#include <utility>

#include "train/files/atomic_file.h"

namespace ringlet::train {

namespace fs = std::filesystem;

namespace {

/// The lines to keep. A line that was cut off has no end and does not count.
std::string kept_lines(const fs::path& path, const LineFile::Keep& keep) {
  std::ifstream file(path);
  std::string kept, line;
  while (std::getline(file, line) && !file.eof()) {
    if (keep(line)) kept += line + "\n";
  }
  return kept;
}

}  // namespace

LineFile::LineFile(fs::path path, std::string what, const Keep& keep)
    : path_(std::move(path)), what_(std::move(what)) {
  std::error_code error;
  const fs::file_type kind = fs::status(path_, error).type();
  const bool goes_on = keep && !is_stream(path_) && kind == fs::file_type::regular;
  const std::string kept = goes_on ? kept_lines(path_, keep) : "";
  if (!is_stream(path_)) write_file_atomically(path_, kept);
  empty_ = kept.empty();
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor_ < 0) {
    throw FileError(what_ + " cannot be opened: " + std::generic_category().message(errno) +
                    "; name another file");
  }
}

LineFile::~LineFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void LineFile::append(std::string_view text) {
  empty_ = empty_ && text.empty();
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      throw FileError(what_ + " cannot be written: " + std::generic_category().message(errno) +
                      "; free some space or name another file");
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace ringlet::train
