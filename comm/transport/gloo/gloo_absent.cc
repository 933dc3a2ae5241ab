// In place of gloo_transport.cc where Gloo was not found.
#include "comm/core/errors.h"
#include "comm/transport/gloo/gloo_transport.h"

namespace ringlet::comm {

bool has_gloo() { return false; }

std::vector<std::unique_ptr<Transport>> connect_gloo(JoinedGroup&, double,
                                                     std::vector<std::unique_ptr<Transport>>) {
  throw CommError(
      "--transport gloo needs Gloo, which this build has not; install libgloo-dev "
      "(sudo apt-get install libgloo-dev) and build anew, or use --transport shm");
}

}  // namespace ringlet::comm
