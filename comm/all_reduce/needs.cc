#include "comm/all_reduce/needs.h"

#include <fmt/format.h>

#include "base/error.h"
#include "kernels/reduce.h"

namespace ringlet::comm {

bool needs_engine(Needs needs) { return needs > Needs::peer_access; }

bool runs_on(Needs needs, std::string_view engine) {
  if (needs == Needs::any_engine) return !engine.empty();
  const std::string_view wanted = needs == Needs::nccl   ? "nccl"
                                  : needs == Needs::gloo ? "gloo"
                                                         : "mpi";
  return needs_engine(needs) && engine == wanted;
}

const char* engine_need(Needs needs) {
  if (needs == Needs::nccl) return "--transport nccl";
  if (needs == Needs::gloo) return "--transport gloo with one replica in each process";
  if (needs == Needs::mpi) return "--transport mpi with one replica in each process";
  return "--transport nccl, or gloo or mpi with one replica in each process";
}

std::string_view engine_name(Transport& transport) {
  const CollectiveEngine* engine = transport.engine();
  return engine == nullptr ? "" : engine->engine_name();
}

bool has(Transport& transport, Needs needs) {
  if (needs_engine(needs)) return runs_on(needs, engine_name(transport));
  if (needs == Needs::nothing) return true;
  return transport.peer_access() != nullptr && transport.size() <= kMaxReduced;
}

PeerAccess& peers_of(Transport& transport, const char* strategy) {
  if (transport.size() > kMaxReduced) {
    throw ContractError(fmt::format("--sync {} is for at most {} ranks, and there are {}", strategy,
                                    kMaxReduced, transport.size()));
  }
  if (PeerAccess* peers = transport.peer_access()) return *peers;
  throw ContractError(
      fmt::format("--sync {} needs ranks that reach each other's memory: the threads of one "
                  "process with --transport local, or processes with --transport shm",
                  strategy));
}

CollectiveEngine& engine_of(Transport& transport, const char* strategy, Needs needs) {
  if (has(transport, needs)) return *transport.engine();
  throw ContractError(fmt::format("--sync {} needs {}", strategy, engine_need(needs)));
}

}  // namespace ringlet::comm
