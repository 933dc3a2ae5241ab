// Ranks of several processes over Gloo (github.com/facebookincubator/gloo, Debian's libgloo-dev),
// for host memory (between/between_transport.h).
//
// Two processes share one TCP connection, on one machine on the loopback; the ranks' messages are
// told apart by Gloo's slots. Gloo allocates a little for each message (its queues by slot), so a
// run in several processes is not free of allocations after step 2.
//
// Gloo's own collectives are the transport's engine (gloo_collectives.h). Gloo would end the
// process on a message that is longer than its receiver expects.
//
// Gloo's own errors say little ("connection closed by peer"), and its time-outs tear down all of a
// process's connections. So an error of Gloo counts as a root cause only if the rendezvous does not
// bring the true one in the following moments.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/core/transport.h"

namespace ringlet::comm {

class JoinedGroup;

/// Whether Ringlet was built with Gloo.
bool has_gloo();
/// Throws CommError with the remedy where this build has none. `hosts`: the machines, for people.
void require_gloo_between(const std::string& hosts);

/// Connects this process with all others of `group`, which do the same. `on_machine`: as for
/// join_between(). From then on the process ignores SIGPIPE, unless it has a handler: writing to a
/// process that has just died shall be an error and not end this one. Throws CommError; if Ringlet
/// was built without Gloo, with the remedy.
ConnectChannel connect_gloo(JoinedGroup& group, double timeout_seconds,
                            ConnectChannel on_machine = {});

}  // namespace ringlet::comm
