#include "base/files/line_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

#include "base/files/atomic_file.h"
#include "base/files/posix_file.h"

namespace ringlet {

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

[[noreturn]] void throw_unopened(const std::string& what, int code) {
  throw FileError(what + " cannot be opened: " + std::generic_category().message(code) +
                  "; name another file");
}

bool is_pipe(const fs::path& path) {
  std::error_code error;
  return fs::status(path, error).type() == fs::file_type::fifo;
}

}  // namespace

Descriptor open_stream(const fs::path& path, const std::string& what) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kPatience(2);  // for a reader that is started at the same time
  constexpr std::chrono::milliseconds kPause(10);
  for (const auto begin = Clock::now();; std::this_thread::sleep_for(kPause)) {
    // Without O_NONBLOCK the system would wait for a reader, in silence and for ever.
    Descriptor stream(
        ::open(path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (stream.open()) {
      ::fcntl(stream.get(), F_SETFL, O_APPEND);  // a reader that is slow is waited for
      return stream;
    }
    if (const int code = errno; code != ENXIO || !is_pipe(path)) throw_unopened(what, code);
    if (Clock::now() - begin < kPatience) continue;
    throw FileError(what + " is a pipe that nobody reads; start its reader first");
  }
}

LineFile::LineFile(fs::path path, std::string what, const Keep& keep)
    : path_(std::move(path)), what_(std::move(what)) {
  if (is_stream(path_)) {
    descriptor_ = open_stream(path_, what_);
    return;
  }
  std::error_code error;
  const bool goes_on = keep && fs::is_regular_file(path_, error);
  const std::string kept = goes_on ? kept_lines(path_, keep) : "";
  write_file_atomically(path_, kept);
  empty_ = kept.empty();
  descriptor_ = posix::open_own(path_, O_WRONLY | O_APPEND);
}

void LineFile::append(std::string_view text) {
  empty_ = empty_ && text.empty();
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor_.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      throw FileError(what_ + " cannot be written: " + std::generic_category().message(errno) +
                      "; free some space or name another file");
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace ringlet
