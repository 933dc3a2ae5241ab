#include "app/commands/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>

#include "base/files/posix_file.h"

namespace ringlet::app {

namespace {

namespace fs = std::filesystem;

/// N where `name` is PREFIX followed by the number N; else 0.
std::int64_t number_behind(const std::string& prefix, const std::string& name) {
  if (!name.starts_with(prefix)) return 0;
  std::int64_t number = 0;
  const char* end = name.data() + name.size();
  const auto [stopped, error] = std::from_chars(name.data() + prefix.size(), end, number);
  return error == std::errc() && stopped == end ? std::max<std::int64_t>(number, 0) : 0;
}

/// The error that the system has told, of `path`.
void require_made(const fs::path& path, const std::error_code& error) {
  if (error) throw posix::file_error("create", path, error.value());
}

}  // namespace

fs::path make_run_folder(const fs::path& root, const std::string& model) {
  std::error_code error;
  fs::create_directories(root, error);
  require_made(root, error);
  const std::string prefix = model + "-";
  std::int64_t last = 0;
  for (fs::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    last = std::max(last, number_behind(prefix, entry->path().filename().string()));
  }
  require_made(root, error);
  while (true) {
    fs::path folder = root / fmt::format("{}{}", prefix, ++last);
    const bool made = fs::create_directory(folder, error);
    require_made(folder, error);
    if (made) return folder;  // else another run has just made it
  }
}

}  // namespace ringlet::app
