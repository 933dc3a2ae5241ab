// Ranks of several processes over MPI, for host memory: non-blocking messages that are tested until
// they are done (between/between_transport.h). For processes that MPI's own launcher has started,
// which gives process n rank n of MPI_COMM_WORLD.
//
// A process waits for messages by MPI_Test, since nobody could leave a blocking call. MPI moves
// data only in its own calls. So a rank that waits looks without a pause at first, and then sleeps
// between looks, to leave the processor to the rank's computation.
//
// MPI's own all-reduce (MPI_Iallreduce), where every process has one rank, is the transport's
// engine.
//
// MPI_THREAD_MULTIPLE is needed. MPI's errors are returned, and a run that was given up does not
// end MPI, which would wait for the dead.
#pragma once

#include <memory>
#include <vector>

#include "comm/core/transport.h"

namespace ringlet::comm {

class JoinedGroup;

/// Connects the processes, as connect_gloo() (gloo_transport.h). Throws CommError with the remedy
/// where there is no MPI, where it is not MPI that has started the processes, and where it has
/// numbered them otherwise.
ConnectChannel connect_mpi(JoinedGroup& group, double timeout_seconds,
                           ConnectChannel on_machine = {});

}  // namespace ringlet::comm
