// A build without toml++: configuration files cannot be read.
#include "app/cli/config.h"

namespace ringlet::app {

std::vector<ConfigEntry> parse_config(std::string_view, const std::string& source) {
  throw ConfigError(source +
                    ": this build reads no configuration files; install "
                    "libtomlplusplus-dev and build again, or give the flags themselves");
}

}  // namespace ringlet::app
