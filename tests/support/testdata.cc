#include "tests/support/testdata.h"

#include <cstdlib>

namespace ringlet::testing {

// The only source that has the checkout's path, so that compilers' caches can share all the others
// between checkouts.
std::string checkout(const std::string& file) {
  const char* brought =
      std::getenv("RINGLET_CHECKOUT");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return std::string(brought == nullptr ? RINGLET_CHECKOUT : brought) + "/" + file;
}

std::string testdata(const std::string& file) { return checkout("tests/testdata/" + file); }

}  // namespace ringlet::testing
