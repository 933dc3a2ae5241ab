// Ranks of several processes over a MessageEngine, Gloo or MPI, for host memory.
//
// What stays near goes another way. Ranks of the same process meet in their LocalGroup, as in a run
// of one process. In a world on several machines the ranks of one machine meet over shared memory,
// if they are in several processes. One exchange may have a near half and a far half: the far half
// is started, the near one runs to its end, and the far one is finished.
//
// A message is a header with the collective and the length, which the receiver compares with its
// own, and then the data in pieces. Pieces are added up while the next ones arrive. The slot of the
// data says their length: so data of another length than expected match nothing, and the header
// tells why. All goes through memory of the transport. So nobody else's memory is ever in the
// engine's hands, and a rank that leaves because of an error may free its own at once. This memory
// grows to the longest message.
//
// Where every process has one rank, the engine's own collectives are the transport's engine. Each
// call begins with a header from the neighbour, which holds all ranks to the same length.
//
// An error of the engine counts as a root cause only if the rendezvous does not bring the true one
// in the following moments.
#pragma once

#include <memory>
#include <vector>

#include "comm/core/transport.h"
#include "comm/transport/between/message_engine.h"

namespace ringlet::comm {

class JoinedGroup;

/// `on_machine`: makes transports that reach all of a machine, which carry what stays there; null:
/// what stays in the process goes over its LocalGroup.
ConnectChannel join_between(JoinedGroup& group, std::shared_ptr<MessageEngine> engine,
                            ConnectChannel on_machine);

}  // namespace ringlet::comm
