#include "tests/support/testdata.h"

namespace ringlet::testing {

// The only source that has the checkout's path, so that compilers' caches can share all the others
// between checkouts.
std::string testdata(const std::string& file) { return RINGLET_TESTDATA "/" + file; }

}  // namespace ringlet::testing
