#include "base/files/posix_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "base/files/aside.h"

namespace ringlet::posix {
namespace {

namespace fs = std::filesystem;

const char* remedy(int code) {
  switch (code) {
    case ENOSPC:
    case EDQUOT:
      return "free space there or write elsewhere";
    case EMFILE:
    case ENFILE:
      return "allow more open files (ulimit -n)";
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

/// What a file is that is not a run's own; null for one that is.
const char* what_else(const struct stat& file) {
  if (S_ISLNK(file.st_mode)) return "a link to another file";
  if (!S_ISREG(file.st_mode)) return "not a regular file";
  // No name at all: its holder has just removed it.
  return file.st_nlink > 1 ? "a link to a file that has another name, too" : nullptr;
}

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
  if (!descriptor.open()) throw file_error("sync", path, errno);
  if (::fsync(descriptor.get()) != 0 && !cannot_sync(errno)) throw file_error("sync", path, errno);
}

void sync_parent(const fs::path& path) { sync_path(parent_of(path)); }

fs::path parent_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

bool is_name_of(const fs::path& path, const Descriptor& open) {
  struct stat named {
  }, opened{};
  return ::lstat(path.c_str(), &named) == 0 && ::fstat(open.get(), &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

Descriptor open_own(const fs::path& file, int flags, mode_t mode) {
  Descriptor descriptor(
      ::open(file.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode));
  const int code = errno;
  struct stat found {};
  const int looked =
      descriptor.open() ? ::fstat(descriptor.get(), &found) : ::lstat(file.c_str(), &found);
  if (const char* other = looked == 0 ? what_else(found) : nullptr) {
    throw FileError(file.string() + " is " + other + ", and a run would write into it; remove it");
  }
  if (!descriptor.open()) throw file_error("write", file, code);
  return descriptor;
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
  const Descriptor lock = lock_folder(target);
  const fs::path old = aside_of(target, "old");
  if (::rename(target.c_str(), old.c_str()) != 0) throw file_error("replace", target, errno);
  if (::rename(source.c_str(), target.c_str()) != 0) {
    const int code = errno;
    (void)::rename(old.c_str(), target.c_str());
    throw file_error("write", target, code);
  }
  put_away(old, former);
}

}  // namespace ringlet::posix
