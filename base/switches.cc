#include "base/switches.h"

#include <cstdlib>
#include <string_view>

namespace ringlet {

namespace {

bool says(const char* name, std::string_view word) {
  const char* const said = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): never written
  return said != nullptr && said == word;
}

}  // namespace

bool is_switched_off(const char* name) { return says(name, "off"); }
bool is_switched_on(const char* name) { return says(name, "on"); }

}  // namespace ringlet
