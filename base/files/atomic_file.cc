#include "base/files/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/files/posix_file.h"

namespace ringlet {

namespace fs = std::filesystem;

namespace {

/// The rename at the end would replace a device by a plain file.
void refuse_device(const fs::path& target) {
  const auto kind = fs::status(target).type();
  if ((kind != fs::file_type::regular && kind != fs::file_type::not_found &&
       kind != fs::file_type::directory) ||
      is_stream(target)) {
    throw FileError("cannot write " + target.string() + ": it is no plain file; name another path");
  }
}

/// Makes a file in `directory` and removes it. Returns errno, or 0.
int try_to_write_into(const fs::path& directory) {
  const fs::path name = directory / "probe";
  posix::remove_dead_asides(name, "tmp");
  const posix::Aside probe = posix::make_aside_file(name);
  if (probe.path.empty()) return errno;
  ::unlink(probe.path.c_str());
  return 0;
}

}  // namespace

bool is_stream(const fs::path& file) {
  std::error_code error;
  const fs::file_type kind = fs::status(file, error).type();
  if (kind == fs::file_type::character || kind == fs::file_type::fifo) return true;
  const std::string folder = fs::canonical(posix::parent_of(file), error).string();
  return folder == "/dev" || folder.starts_with("/proc/");
}

AtomicFile::AtomicFile(const fs::path& target) : target_(target) {
  refuse_device(target_);
  posix::remove_dead_asides(target_, "tmp");
  aside_ = posix::make_aside_file(target_);
  if (aside_.path.empty()) throw posix::file_error("write", target_, errno);
}

AtomicFile::~AtomicFile() {
  if (!committed_) ::unlink(aside_.path.c_str());
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  posix::write_all(aside_.lock.get(), target_, data, bytes);
}

void AtomicFile::commit() {
  if (::fsync(aside_.lock.get()) != 0) throw posix::file_error("write", target_, errno);
  // Closing tells of a write that failed late. The lock stays until the last descriptor is closed.
  Descriptor written =
      std::exchange(aside_.lock, Descriptor(::fcntl(aside_.lock.get(), F_DUPFD_CLOEXEC, 0)));
  if (written.close() != 0) throw posix::file_error("write", target_, errno);
  if (::rename(aside_.path.c_str(), target_.c_str()) != 0) {
    throw posix::file_error("write", target_, errno);
  }
  committed_ = true;
  (void)aside_.lock.close();
  posix::sync_parent(target_);
}

void write_file_atomically(const fs::path& target, std::string_view content) {
  AtomicFile file(target);
  file.write(content);
  file.commit();
}

void require_writable_directory(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) throw posix::file_error("make the folder", directory, error.value());
  if (const int code = try_to_write_into(directory); code != 0) {
    throw posix::file_error("write into", directory, code);
  }
}

void require_writable_file(const fs::path& file) {
  refuse_device(file);
  const int code = fs::is_directory(file) ? EISDIR : try_to_write_into(posix::parent_of(file));
  if (code != 0) throw posix::file_error("write", file, code);
}

}  // namespace ringlet
