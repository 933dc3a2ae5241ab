#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>

#include "app/cli/config.h"

namespace ringlet::app {

namespace {

namespace fs = std::filesystem;

/// A pipe in a folder may never get a writer. Those of a shell, as <(command), have one.
bool is_named_pipe(const fs::path& file) {
  std::error_code error;
  const std::string name = file.string();
  return fs::status(file, error).type() == fs::file_type::fifo && !name.starts_with("/dev/") &&
         !name.starts_with("/proc/");
}

}  // namespace

std::vector<ConfigEntry> read_config(const std::filesystem::path& file, const char* named_by) {
  const auto fail = [&](const std::string& why) {
    throw ConfigError(fmt::format("{} {} cannot be read ({})", named_by, file.string(), why));
  };
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) fail("it is a folder");
  if (is_named_pipe(file)) fail("it is a pipe, which may never get a writer; name a file");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) fail(std::generic_category().message(errno));
  std::string text(kMaxConfigBytes + 1, '\0');  // one more than is taken: told apart, never loaded
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) fail(std::generic_category().message(errno));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return parse_config(text, file.string());
}

}  // namespace ringlet::app
