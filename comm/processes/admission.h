// Who belongs to a run: what the hub compares before the first step, and how it says what differs.
#pragma once

#include <string>

#include "comm/processes/hello.h"
#include "comm/processes/rendezvous_server.h"

namespace ringlet::comm {

/// Why a comer over TCP is none of the run's, by its token and the run's name; "" where it is one.
std::string why_refused(const Hello& comer, const HubOptions& hub);

/// Why two processes, of which the hub is to know `comer` after `known`, are not of one run: they
/// have one number, or other settings than process 0. "" where nothing speaks against it.
std::string why_not_one_run(const Hello& known, const Hello& comer, bool with_hosts);

}  // namespace ringlet::comm
