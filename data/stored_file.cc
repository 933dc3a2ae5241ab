#include "data/stored_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/data_error.h"

namespace ringlet::data {

StoredFile::StoredFile(const std::filesystem::path& path)
    : name_(path.string()), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (!file_.open() && errno == ENOENT) fail("there is no such file; check the path");
  struct stat found {};
  if (!file_.open() || ::fstat(file_.get(), &found) != 0) {
    fail("cannot be opened: " + std::generic_category().message(errno) + "; check its permissions");
  }
  if (!S_ISREG(found.st_mode)) fail("is not a regular file; name a file");
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  bytes_ = static_cast<std::uint64_t>(found.st_size);
  modified_ = found.st_mtim.tv_sec * kNanoseconds + found.st_mtim.tv_nsec;
}

void StoredFile::read(std::uint64_t from, std::span<std::uint8_t> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(from));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail("cannot be read; check the disk");
    from += static_cast<std::uint64_t>(got);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

void StoredFile::fail(const std::string& what) const { throw DataError(name_ + ": " + what); }

}  // namespace ringlet::data
