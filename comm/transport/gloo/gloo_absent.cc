// Instead of gloo_transport.cc where Gloo was not found.
#include "comm/core/errors.h"
#include "comm/transport/gloo/gloo_transport.h"

namespace ringlet::comm {

bool has_gloo() { return false; }

void require_gloo_between(const std::string& hosts) {
  throw CommError(
      "this build has no Gloo, which joins processes on several machines (" + hosts +
      "); install libgloo-dev (sudo apt-get install libgloo-dev) and build anew on all, "
      "or start with mpirun and --transport mpi");
}

ConnectChannel connect_gloo(JoinedGroup&, double, ConnectChannel) {
  throw CommError(
      "--transport gloo needs Gloo, which this build has not; install libgloo-dev "
      "(sudo apt-get install libgloo-dev) and build anew, or use --transport shm");
}

}  // namespace ringlet::comm
