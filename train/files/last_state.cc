#include "train/files/last_state.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "base/files/atomic_file.h"
#include "base/files/posix_file.h"

namespace ringlet::train {

namespace fs = std::filesystem;

namespace {

bool is_there(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder, error);
}

/// Throws FileError where a file is not as it was saved.
SavedState read_whole(const fs::path& folder) {
  SavedState state = read_state(folder);
  require_whole(state);
  return state;
}

}  // namespace

std::optional<LastState> find_last_state(const fs::path& out) {
  const fs::path newest = AtomicDirectory::current(out / "state"), before = out / kStateBefore;
  if (!is_there(newest) && !is_there(before)) return {};
  std::string why = newest.string() + " is not there";
  if (is_there(newest)) {
    try {
      return LastState{read_whole(out)};
    } catch (const FileError& error) {
      why = error.what();
    }
  }
  try {
    LastState last{read_whole(before)};
    last.warning = fmt::format("{}; the run goes on from the state before that, after step {}", why,
                               last.state.progress.step);
    return last;
  } catch (const FileError&) {
    throw FileError(fmt::format(
        "{}; no state before that can be read, so nothing is left to go on from: remove {} to "
        "begin anew",
        why, newest.string()));
  }
}

void restore(LastState& last, const fs::path& out) {
  const fs::path newest = out / "state";
  if (last.state.folder == newest) return;
  if (is_there(newest)) posix::put_away(newest, out / "state.broken");
  if (std::rename(last.state.folder.c_str(), newest.c_str()) != 0) {
    throw posix::file_error("write", newest, errno);
  }
  posix::sync_parent(newest);
  last.state.folder = newest;
}

}  // namespace ringlet::train
