#include "train/files/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include "base/files/posix_file.h"
#include "base/machine.h"
#include "base/one_line.h"

namespace ringlet::train {

namespace fs = std::filesystem;

namespace {

constexpr const char* kName = ".ringlet.lock";
constexpr mode_t kMode = S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;

/// False where another process has the lock. A file system without locks gives it to everybody.
bool lock(const Descriptor& file, int kind) {
  return ::flock(file.get(), kind | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

/// The same, of a run that starts: others who only ask whether the folder is free hold the lock for
/// a moment.
bool lock_patiently(const Descriptor& file) {
  constexpr int kTries = 50;
  for (int i = 0; i < kTries; ++i) {
    if (lock(file, LOCK_EX)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

/// Throws what the file of another run's lock says of that run.
[[noreturn]] void refuse(const fs::path& folder, const Descriptor& file) {
  std::array<char, 300> text{};
  const ssize_t got = ::pread(file.get(), text.data(), text.size() - 1, 0);
  throw FileError(folder.string() + " is being written by " +
                  (got > 0 ? on_one_line(text.data()) : "another run") +
                  "; wait for its end, stop it, or name another folder");
}

/// Whether the path leads to what is open. A link counts as what it leads to.
bool leads_to(const fs::path& path, const Descriptor& open) {
  struct stat named {
  }, opened{};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(open.get(), &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

}  // namespace

RunLock::RunLock(const fs::path& folder)
    : file_(folder / kName), folder_(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  while (true) {
    descriptor_ = posix::open_own(file_, O_RDWR | O_CREAT, kMode);
    if (!lock_patiently(descriptor_)) refuse(folder, descriptor_);
    if (posix::is_name_of(file_, descriptor_)) break;  // else its holder has just removed it
  }
  const std::string holder = "process " + std::to_string(::getpid()) + " on " + host_name();
  // The text is for people: the lock holds without it, on a full disk too.
  if (::ftruncate(descriptor_.get(), 0) != 0) return;
  (void)!::pwrite(descriptor_.get(), holder.data(), holder.size(), 0);
}

RunLock::~RunLock() {
  if (!posix::is_name_of(file_, descriptor_)) return;  // another run's, whose folder has this name
  ::unlink(file_.c_str());  // before it is unlocked: nobody can have locked what goes
}

void RunLock::require_held() const {
  std::error_code error;
  const bool is_there = leads_to(file_.parent_path(), folder_);
  const bool is_own = posix::is_name_of(file_, descriptor_) ||
                      !fs::exists(fs::symlink_status(file_, error));  // somebody tidied up
  if (is_there && is_own) return;
  throw FileError(
      file_.parent_path().string() +
      " is not the run's folder any more: it was moved, removed or taken by another "
      "run; nothing more is saved; go on with it, by --resume, where its folder is now");
}

void RunLock::require_free(const fs::path& folder) {
  const Descriptor file(
      ::open((folder / kName).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.open()) return;  // nobody writes there
  if (!lock(file, LOCK_SH)) refuse(folder, file);
}

}  // namespace ringlet::train
