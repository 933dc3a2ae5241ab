#include <cerrno>
#include <cstdio>

#include "train/files/atomic_file.h"
#include "train/files/posix_file.h"

namespace ringlet::train {
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
  std::error_code error;
  const fs::directory_iterator entries(posix::parent_of(target), error);
  for (const auto& entry : entries) {
    const std::string name = entry.path().filename().string();
    if (!posix::is_aside(name, target.filename().string(), "old")) continue;
    if (std::rename(entry.path().c_str(), target.c_str()) == 0) return;
  }
}

}  // namespace

AtomicDirectory::AtomicDirectory(const fs::path& target)
    : target_(without_trailing_slash(target)), aside_(posix::aside_of(target_, "tmp")) {
  recover(target_);
  std::error_code error;
  if (fs::exists(target_, error) && !fs::is_directory(target_, error)) {
    throw posix::file_error("write the folder", target_, ENOTDIR);
  }
  fs::remove_all(aside_, error);  // of a former process with the same number
  fs::create_directory(aside_, error);
  if (error) throw posix::file_error("write the folder", target_, error.value());
}

AtomicDirectory::~AtomicDirectory() {
  std::error_code error;
  if (!committed_) fs::remove_all(aside_, error);
}

void AtomicDirectory::commit(const fs::path& former) {
  std::error_code error;
  sync_tree(aside_);
  if (!fs::exists(target_, error)) {
    if (std::rename(aside_.c_str(), target_.c_str()) != 0) {
      throw posix::file_error("write the folder", target_, errno);
    }
  } else if (posix::exchange(aside_, target_)) {
    posix::sync_parent(target_);  // first the new name, then the old content's end
    posix::put_away(aside_, former);
  } else {
    posix::replace_in_two_steps(aside_, target_, former);
  }
  committed_ = true;
  posix::sync_parent(target_);
}

void AtomicDirectory::recover(const fs::path& named) {
  const fs::path target = without_trailing_slash(named);
  std::error_code error;
  if (!fs::exists(target, error)) put_back_old(target);
  posix::remove_abandoned(target, "tmp");
  if (fs::exists(target, error)) posix::remove_abandoned(target, "old");
}

}  // namespace ringlet::train
