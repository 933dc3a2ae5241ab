#include "train/files/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "train/files/atomic_file.h"
#include "train/files/one_line.h"
#include "train/files/posix_file.h"

namespace ringlet::train {

namespace fs = std::filesystem;

namespace {

constexpr const char* kName = ".ringlet.lock";

/// False where another process has the lock. A file system without locks gives it to everybody.
bool lock(int descriptor) {
  return ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

/// Whether `file` is still the name of what is open.
bool is_name_of(const fs::path& file, int descriptor) {
  struct stat named {
  }, open{};
  return ::stat(file.c_str(), &named) == 0 && ::fstat(descriptor, &open) == 0 &&
         named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

std::string this_process() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {"this host"};
  return "process " + std::to_string(::getpid()) + " on " + host.data();
}

/// Closes the file of another run's lock, and throws what that says of its run.
[[noreturn]] void refuse(const fs::path& folder, int descriptor) {
  std::array<char, 300> text{};
  const ssize_t got = ::pread(descriptor, text.data(), text.size() - 1, 0);
  ::close(descriptor);
  throw FileError(folder.string() + " is being written by " +
                  (got > 0 ? on_one_line(text.data()) : "another run") +
                  "; wait for its end, stop it, or name another folder");
}

}  // namespace

RunLock::RunLock(const fs::path& folder) : file_(folder / kName) {
  constexpr mode_t kMode = S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;
  while (true) {
    descriptor_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMode);
    if (descriptor_ < 0) throw posix::file_error("write", file_, errno);
    if (!lock(descriptor_)) refuse(folder, descriptor_);
    if (is_name_of(file_, descriptor_)) break;
    ::close(descriptor_);  // its holder has just removed it
  }
  const std::string holder = this_process();
  // The text is for people: the lock holds without it, on a full disk too.
  if (::ftruncate(descriptor_, 0) != 0) return;
  (void)!::pwrite(descriptor_, holder.data(), holder.size(), 0);
}

RunLock::~RunLock() {
  ::unlink(file_.c_str());  // before it is unlocked: nobody can have locked what goes
  ::close(descriptor_);
}

void RunLock::require_free(const fs::path& folder) {
  const int descriptor = ::open((folder / kName).c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return;  // nobody writes there, or nobody here may
  if (!lock(descriptor)) refuse(folder, descriptor);
  ::close(descriptor);
}

}  // namespace ringlet::train
