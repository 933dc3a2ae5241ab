// Instead of mpi_transport.cc in the program as one file (RINGLET_STATIC).
#include "comm/core/errors.h"
#include "comm/transport/mpi/mpi_transport.h"

namespace ringlet::comm {

ConnectChannel connect_mpi(JoinedGroup&, double, ConnectChannel) {
  throw CommError(
      "--transport mpi is not in the program as one file; install Ringlet's .deb and Open MPI, or "
      "use --transport shm on one machine");
}

}  // namespace ringlet::comm
