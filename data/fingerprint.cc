#include "data/fingerprint.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/data_error.h"
#include "base/descriptor.h"
#include "base/hash.h"

namespace ringlet::data {

namespace {

namespace fs = std::filesystem;

/// A regular file, open to be read.
class OpenFile {
 public:
  explicit OpenFile(const fs::path& path)
      : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (!file_.open() && errno == ENOENT) fail("there is no such file; check the path");
    struct stat found {};
    if (!file_.open() || ::fstat(file_.get(), &found) != 0) {
      fail("cannot be opened: " + std::generic_category().message(errno) +
           "; check its permissions");
    }
    if (!S_ISREG(found.st_mode)) fail("is not a regular file; name a file");
    bytes_ = static_cast<std::uint64_t>(found.st_size);
  }
  std::uint64_t bytes() const { return bytes_; }

  void read(std::uint64_t from, std::span<std::uint8_t> bytes) const {
    while (!bytes.empty()) {
      const ssize_t got =
          ::pread(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(from));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) fail("cannot be read; check the disk");
      from += static_cast<std::uint64_t>(got);
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(path_.string() + ": " + what);
  }

  const fs::path& path_;
  Descriptor file_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

std::uint64_t fingerprint_of(const fs::path& path) {
  thread_local std::vector<std::uint8_t> bytes(kReadWhole);
  const OpenFile file(path);
  std::uint64_t hash = file.bytes();
  const auto add = [&](std::uint64_t from, std::uint64_t count) {
    const std::span<std::uint8_t> part(bytes.data(), count);
    file.read(from, part);
    hash = hash_bytes(part, hash);
  };
  if (file.bytes() <= kReadWhole) {
    add(0, file.bytes());
  } else {
    const std::uint64_t end = file.bytes() - kReadPart;
    for (const std::uint64_t from : {std::uint64_t{0}, end / 2, end}) add(from, kReadPart);
  }
  return hash;
}

}  // namespace ringlet::data
