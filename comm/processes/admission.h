// Who belongs to a run: what the hub compares before the first step, and how it says what differs.
//
// Over TCP a comer proves that it knows the run's token, and the hub proves it too. The token
// itself never goes over the wire, and what was heard there once serves nobody at another meeting:
//
//   comer -> hub    hello: who it is, its run, a random number
//   hub -> comer    challenge: a random number
//   comer -> hub    proof: HMAC-SHA256(token, "ringlet comer", the challenge, the hello)
//   hub -> comer    welcome, once all have come: HMAC-SHA256(token, "ringlet hub", the same)
//
// Whoever listens can still try short tokens at leisure: a token has to be long and random.
#pragma once

#include <string>

#include "comm/processes/hello.h"
#include "comm/processes/rendezvous_server.h"

namespace ringlet::comm {

std::string comers_proof(const std::string& token, const Message& hello,
                         const std::string& challenge);
std::string hubs_proof(const std::string& token, const Message& hello,
                       const std::string& challenge);

/// What the others hear of a process whose hello says that it has failed.
std::string why_it_cannot_begin(const Hello& comer, bool with_host);

// Why a comer over TCP is not let in; "" where nothing speaks against it.
std::string why_of_another_version(const Hello& comer, const HubOptions& hub);
std::string why_of_another_run(const Hello& comer, const HubOptions& hub);
/// Where its proof was wrong.
std::string why_without_token(const Hello& comer, const HubOptions& hub);

/// Why two processes, of which the hub is to know `comer` after `known`, are not of one run: they
/// have one number, or other settings than process 0. "" where nothing speaks against it.
std::string why_not_one_run(const Hello& known, const Hello& comer, bool with_hosts);

}  // namespace ringlet::comm
