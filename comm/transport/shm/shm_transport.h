// Ranks of several processes of one machine over memory that they share (shm_memory.h), for host
// memory.
//
// A message goes through the slots of a channel, piece by piece: the sender copies a piece into a
// free slot, the receiver copies or reduces it from there and frees the slot. An exchange works on
// both of its sides as they can go on, so a message may be longer than its channel, and the
// sender's copy of one piece runs beside the receiver's reduction of the one before. Ranks of the
// same process talk the same way.
//
// What is on its way lies in shared memory only. So a rank that leaves because of an error may free
// its own memory at once, and a process that dies takes nothing with it.
#pragma once

#include <memory>
#include <vector>

#include "comm/core/transport.h"

namespace ringlet::comm {

class JoinedGroup;

/// For each channel, shares memory with all other processes of `group` on this machine, which do
/// the same. Its transports reach the ranks of this machine. Throws CommError, Aborted, also when a
/// channel is connected.
ConnectChannel connect_shm(JoinedGroup& group, double timeout_seconds);

}  // namespace ringlet::comm
