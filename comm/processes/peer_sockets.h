// A TCP connection between this process and each other one of the run, for its data.
//
// Each process listens at one address, on a port of the kernel's choice, and tells the others of it
// over the rendezvous. A process connects to those before it. The first bytes on a connection are a
// proof that who connects is of the run: it knows the secret that process 0 has drawn for it. So
// strangers may connect in any number, send anything or nothing: they change nothing, and none of
// their bytes gets any further than here.
#pragma once

#include <string>
#include <vector>

#include "base/descriptor.h"
#include "comm/processes/rendezvous.h"

namespace ringlet::comm {

/// One for each process of the run, this one's not open. They do not block. Collective over the
/// processes, once in a run. `address` is this machine's, in numbers, at which the others reach it.
/// Throws Aborted soon after the run was given up, and CommError where they do not come about.
std::vector<Descriptor> connect_peers(Rendezvous& rendezvous, const std::string& address,
                                      double timeout_seconds);

}  // namespace ringlet::comm
