#include "train/files/posix_file.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

namespace ringlet::train::posix {
namespace {

namespace fs = std::filesystem;

const char* remedy(int code) {
  switch (code) {
    case ENOSPC:
    case EDQUOT:
      return "free space there or write elsewhere";
    case EFBIG:
      return "raise the limit on file sizes (ulimit -f)";
    case EACCES:
    case EPERM:
      return "choose a folder that you may write to";
    case EROFS:
      return "the file system is read-only; choose another folder";
    case ENOTDIR:
      return "a part of the path is a file; choose another path";
    case ENOENT:
      return "make the folder first";
    case EBUSY:
    case EISDIR:
    case ENOTEMPTY:
    case EEXIST:
      return "something else has that name; remove it or choose another path";
    default:
      return "check the disk or choose another path";
  }
}

/// A descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

/// Some file systems have nothing to flush for a folder and say so.
bool cannot_sync(int code) { return code == EINVAL || code == ENOTSUP; }

}  // namespace

FileError file_error(const char* verb, const fs::path& path, int code) {
  return FileError(std::string("cannot ") + verb + " " + path.string() + ": " +
                   std::generic_category().message(code) + "; " + remedy(code));
}

void write_all(int descriptor, const fs::path& path, const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor, at, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw file_error("write", path, errno);
    at += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

void sync_path(const fs::path& path) {
  const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (descriptor.get() < 0) throw file_error("sync", path, errno);
  if (::fsync(descriptor.get()) != 0 && !cannot_sync(errno)) throw file_error("sync", path, errno);
}

void sync_parent(const fs::path& path) { sync_path(parent_of(path)); }

fs::path parent_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

fs::path aside_of(const fs::path& path, const char* suffix) {
  return path.string() + "." + suffix + "." + std::to_string(::getpid());
}

bool is_aside(const std::string& name, const std::string& target, const char* suffix) {
  const std::string start = target + "." + suffix + ".";
  return name.starts_with(start) && name.size() > start.size() &&
         std::all_of(name.begin() + static_cast<std::ptrdiff_t>(start.size()), name.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

bool is_abandoned(const std::string& aside) {
  const std::string digits = aside.substr(aside.rfind('.') + 1);
  constexpr std::size_t kMaxDigits = 9;  // beyond it no process number
  if (digits.size() > kMaxDigits) return true;
  const pid_t writer = std::stoi(digits);
  return writer <= 0 || (::kill(writer, 0) != 0 && errno == ESRCH);
}

void remove_abandoned(const fs::path& target, const char* suffix) noexcept {
  try {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(parent_of(target), error)) {
      const std::string name = entry.path().filename().string();
      if (!is_aside(name, target.filename().string(), suffix) || !is_abandoned(name)) continue;
      fs::remove_all(entry.path(), error);
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): what cannot be tidied up is left for later
  }
}

bool exchange(const fs::path& a, const fs::path& b) {
  if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) return true;
  if (errno == EINVAL || errno == ENOSYS || errno == ENOTSUP) return false;
  throw file_error("write", b, errno);
}

void put_away(const fs::path& replaced, const fs::path& former) {
  std::error_code error;
  const bool exchanged = !former.empty() && fs::exists(former, error) && exchange(replaced, former);
  if (former.empty() || exchanged) {
    fs::remove_all(replaced, error);
    return;
  }
  fs::remove_all(former, error);
  if (::rename(replaced.c_str(), former.c_str()) != 0) throw file_error("write", former, errno);
}

void replace_in_two_steps(const fs::path& source, const fs::path& target, const fs::path& former) {
  const fs::path old = aside_of(target, "old");
  std::error_code error;
  fs::remove_all(old, error);
  if (::rename(target.c_str(), old.c_str()) != 0) throw file_error("replace", target, errno);
  if (::rename(source.c_str(), target.c_str()) != 0) {
    const int code = errno;
    (void)::rename(old.c_str(), target.c_str());
    throw file_error("write", target, code);
  }
  put_away(old, former);
}

}  // namespace ringlet::train::posix
