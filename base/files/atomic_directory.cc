#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <vector>

#include "base/files/atomic_file.h"
#include "base/files/posix_file.h"

namespace ringlet {
namespace {

namespace fs = std::filesystem;

/// "out/state/" and "out/state" are the same folder.
fs::path without_trailing_slash(const fs::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

void sync_tree(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) posix::sync_path(entry.path());
  posix::sync_path(folder);
}

/// Puts a former version back that replace_in_two_steps had moved away when it was killed.
void put_back_old(const fs::path& target) {
  for (const fs::path& aside : posix::asides_of(target, "old")) {
    const Descriptor held = posix::lock_if_dead(aside);
    if (held.open() && std::rename(aside.c_str(), target.c_str()) == 0) return;
  }
}

}  // namespace

AtomicDirectory::AtomicDirectory(const fs::path& target) : target_(without_trailing_slash(target)) {
  recover(target_);
  std::error_code error;
  if (fs::exists(target_, error) && !fs::is_directory(target_, error)) {
    throw posix::file_error("write the folder", target_, ENOTDIR);
  }
  aside_ = posix::make_aside_folder(target_);
  if (aside_.path.empty()) throw posix::file_error("write the folder", target_, errno);
}

AtomicDirectory::~AtomicDirectory() {
  std::error_code error;
  if (!committed_) fs::remove_all(aside_.path, error);
}

void AtomicDirectory::commit(const fs::path& former) {
  const fs::path& aside = aside_.path;
  std::error_code error;
  sync_tree(aside);
  // What is replaced has the aside's name for a moment, and nobody may take it for dead.
  const Descriptor replaced = posix::lock_folder(target_);
  if (!fs::exists(target_, error)) {
    if (std::rename(aside.c_str(), target_.c_str()) != 0) {
      throw posix::file_error("write the folder", target_, errno);
    }
  } else if (posix::exchange(aside, target_)) {
    posix::sync_parent(target_);  // first the new name, then the old content's end
    posix::put_away(aside, former);
  } else {
    posix::replace_in_two_steps(aside, target_, former);
  }
  committed_ = true;
  posix::sync_parent(target_);
}

void AtomicDirectory::recover(const fs::path& named) {
  const fs::path target = without_trailing_slash(named);
  std::error_code error;
  if (!fs::exists(target, error)) put_back_old(target);
  posix::remove_dead_asides(target, "tmp");
  if (fs::exists(target, error)) posix::remove_dead_asides(target, "old");
}

fs::path AtomicDirectory::current(const fs::path& named) {
  const fs::path target = without_trailing_slash(named);
  std::error_code error;
  if (fs::exists(target, error)) return target;
  const std::vector<fs::path> former = posix::asides_of(target, "old");
  const auto newest = std::ranges::max_element(
      former, {}, [&error](const fs::path& aside) { return fs::last_write_time(aside, error); });
  return newest == former.end() ? target : *newest;
}

}  // namespace ringlet
