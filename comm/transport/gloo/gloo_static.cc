// Instead of gloo_transport.cc in the program as one file (RINGLET_STATIC).
#include "comm/core/errors.h"
#include "comm/transport/gloo/gloo_transport.h"

namespace ringlet::comm {

bool has_gloo() { return false; }

void require_gloo_between(const std::string& hosts) {
  throw CommError(
      "the program as one file has no Gloo, which joins processes on several machines (" + hosts +
      "); install Ringlet's wheel or .deb on all");
}

ConnectChannel connect_gloo(JoinedGroup&, double, ConnectChannel) {
  throw CommError(
      "--transport gloo is not in the program as one file; install Ringlet's wheel or .deb, or use "
      "--transport shm");
}

}  // namespace ringlet::comm
