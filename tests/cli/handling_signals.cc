// Loaded by LD_PRELOAD: handles SIGHUP from its own constructor on, as UCX does, which comes with
// some builds of MPI.
#include <csignal>

namespace {

[[gnu::constructor]] void handle() {
  std::signal(SIGHUP, [](int) {});
}

}  // namespace
