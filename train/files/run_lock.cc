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

}  // namespace

RunLock::RunLock(const fs::path& folder) : file_(folder / kName) {
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
  ::unlink(file_.c_str());  // before it is unlocked: nobody can have locked what goes
}

void RunLock::require_free(const fs::path& folder) {
  const Descriptor file(
      ::open((folder / kName).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.open()) return;  // nobody writes there
  if (!lock(file, LOCK_SH)) refuse(folder, file);
}

}  // namespace ringlet::train
