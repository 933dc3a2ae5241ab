#include "base/utc_time.h"

#include <array>
#include <ctime>

namespace ringlet {

// By the C library: fmt/chrono.h takes the compiler two seconds in each file that reads it.
std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, sizeof "-2147481748-01-31T09:05:00Z"> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

}  // namespace ringlet
