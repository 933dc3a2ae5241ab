#include "base/switches.h"

#include <cstdlib>
#include <string_view>

namespace ringlet {

bool is_switched_off(const char* name) {
  const char* const said = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): never written
  return said != nullptr && std::string_view(said) == "off";
}

}  // namespace ringlet
