// A configuration file: TOML whose keys are the flags of the command line without their dashes.
//
//   batch-size = 256
//   exact = true                      # switches: true or false
//   devices = ["cpu:0", "cpu:0"]      # lists as arrays
//
// All keys stand at the top: there are no tables. Here a value becomes the text that the command
// line would have; whoever reads that decides what it means.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/error_exit.h"

namespace ringlet::app {

/// "run.toml:3: ...": a configuration that cannot be read or means nothing.
class ConfigError : public UsageError {
 public:
  using UsageError::UsageError;
};

/// A larger configuration is refused before it is read.
inline constexpr std::size_t kMaxConfigBytes = 64 * 1024;

struct ConfigEntry {
  enum class Kind : std::uint8_t { boolean, value, list };
  std::string key;
  Kind kind = Kind::value;
  std::vector<std::string> values;  ///< one, "true" or "false" for a boolean; any number for a list
  std::int64_t line = 0;            ///< from 1
};

/// The entries in the order of their lines. `source` names the text in errors. Throws ConfigError
/// with the line for what is not TOML, for tables, dates and lists of lists, and for a text that is
/// larger or more deeply nested than any configuration.
std::vector<ConfigEntry> parse_config(std::string_view text, const std::string& source);

/// The same of a file, which is named in errors as it is written here; `named_by`: what named it.
std::vector<ConfigEntry> read_config(const std::filesystem::path& file,
                                     const char* named_by = "--config");

}  // namespace ringlet::app
