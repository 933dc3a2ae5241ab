// What a strategy needs of its transport beyond exchange(), and whether the transport has it.
#pragma once

#include <cstdint>
#include <string_view>

#include "comm/core/transport.h"

namespace ringlet::comm {

enum class Needs : std::uint8_t {
  nothing,      ///< exchange() alone
  peer_access,  ///< Transport::peer_access(), of at most kMaxReduced ranks
  nccl,         ///< the Transport::engine() of this name
  gloo,         ///< likewise
  mpi,          ///< likewise
  any_engine,   ///< Transport::engine(), whichever it is
};

/// Whether the transport's library does the work.
bool needs_engine(Needs needs);
/// Whether `engine`, a name or "" for none, is one that `needs` asks for.
bool runs_on(Needs needs, std::string_view engine);
/// The flag that brings the engine: "--transport nccl".
const char* engine_need(Needs needs);

/// Name of the transport's engine, or "" without one.
std::string_view engine_name(Transport& transport);
/// Whether the transport has what is needed.
bool has(Transport& transport, Needs needs);

/// The transport's access to other ranks' memory. Throws ContractError naming `strategy` and what
/// is missing where there is none, or for more than kMaxReduced ranks.
PeerAccess& peers_of(Transport& transport, const char* strategy);
/// The transport's engine. Throws ContractError naming `strategy` and the flag that is missing
/// where it is not one that `needs` asks for.
CollectiveEngine& engine_of(Transport& transport, const char* strategy, Needs needs);

}  // namespace ringlet::comm
