#include "train/sync/transport_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "comm/all_reduce/needs.h"
#include "comm/transport/nccl/nccl_transport.h"
#include "train/recipe/stage_count.h"
#include "train/sync/tuning.h"

namespace ringlet::train {

namespace {

/// Of each stage, where the threads of one process have all of them.
void require_one_kind(const Execution& execution) {
  const std::vector<DeviceId>& devices = execution.devices;
  const auto ranks = static_cast<int>(devices.size()), stages = stages_in(execution.stages);
  const bool all_here = !execution.in_processes && stages > 1 && ranks % stages == 0;
  const int together = all_here ? ranks / stages : ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    const DeviceId &device = devices[static_cast<std::size_t>(rank)],
                   &first = devices[static_cast<std::size_t>(rank - rank % together)];
    if (device.kind == first.kind) continue;
    throw ContractError("all replicas run on devices of one kind, not on " + first.to_string() +
                        " and " + device.to_string());
  }
}

/// Why NCCL cannot serve these devices, as the end of a sentence; "" if it can.
std::string why_not_nccl(const std::vector<DeviceId>& devices) {
  if (devices.front().kind != DeviceKind::cuda) return "is for GPUs; use --device cuda";
  for (auto device = devices.begin(); device != devices.end(); ++device) {
    if (std::find(devices.begin(), device, *device) == device) continue;
    return "needs a GPU for each replica, and " + device->to_string() +
           " has several; use --transport local and another --sync than NCCL's";
  }
  return "";
}

TransportChoice require_nccl(const std::vector<DeviceId>& devices, const std::string& flag) {
  const std::string why_not = why_not_nccl(devices);
  if (!why_not.empty()) throw ContractError(flag + " " + why_not);
  return TransportChoice::nccl;
}

}  // namespace

bool may_meet_over_nccl(TransportChoice choice, const std::vector<DeviceId>& devices) {
  return choice != TransportChoice::local && devices.size() > 1 && why_not_nccl(devices).empty();
}

TransportChoice choose_transport(const Execution& execution) {
  const bool in_processes = execution.in_processes;
  const std::vector<DeviceId>& devices = execution.devices;
  require_one_kind(execution);
  const comm::Needs needs = execution.strategies.needs_of(execution.sync);
  const bool is_engines = comm::needs_engine(needs);
  const bool is_for_processors = needs == comm::Needs::gloo || needs == comm::Needs::mpi;
  const bool needs_memory = needs == comm::Needs::peer_access;
  const std::string sync = "--sync " + execution.sync;
  const bool on_gpus = devices.front().kind == DeviceKind::cuda;
  const auto refuse_memory = [&] {
    if (!needs_memory) return;
    throw ContractError(sync +
                        " needs replicas that reach each other's memory: the threads of one "
                        "process with --transport local, or processes on processors with "
                        "--transport shm; choose another --sync, ring say");
  };
  const auto refuse_engine = [&] {
    throw ContractError(sync + " needs " + comm::engine_need(needs));
  };
  const bool has_process_engine = in_processes && !on_gpus && devices.size() == 1;
  switch (execution.transport) {
    case TransportChoice::nccl:
      refuse_memory();
      if (is_for_processors) refuse_engine();
      return require_nccl(devices, "--transport nccl");
    case TransportChoice::local:
      if (in_processes) {
        throw ContractError(
            "--transport local joins the replicas of one process; several processes need "
            "--transport shm, or nccl for GPUs");
      }
      if (is_engines) refuse_engine();
      return TransportChoice::local;
    case TransportChoice::shm:
    case TransportChoice::gloo:
    case TransportChoice::mpi:
      if (!in_processes || on_gpus) {
        throw ContractError(
            fmt::format("--transport {} joins several processes, with --processes, on processors; "
                        "use --transport auto",
                        name_of(execution.transport)));
      }
      if (is_engines && !(execution.transport != TransportChoice::shm && has_process_engine &&
                          comm::runs_on(needs, name_of(execution.transport)))) {
        refuse_engine();
      }
      if (execution.transport != TransportChoice::shm) refuse_memory();
      return execution.transport;
    case TransportChoice::automatic:
      break;
  }
  if (has_process_engine && comm::runs_on(needs, "gloo")) return TransportChoice::gloo;
  if (has_process_engine && needs == comm::Needs::mpi) return TransportChoice::mpi;
  if (is_for_processors) refuse_engine();
  if (in_processes && on_gpus) {
    refuse_memory();
    return require_nccl(devices, "NCCL, which joins GPUs of several processes,");
  }
  if (is_engines) return require_nccl(devices, sync);
  if (in_processes) return TransportChoice::shm;
  const bool is_cut = stages_in(execution.stages) > 1;  // NCCL joins no stages so far
  const bool possible =
      devices.size() > 1 && !needs_memory && !is_cut && why_not_nccl(devices).empty();
  return possible && !comm::nccl_version().empty() ? TransportChoice::nccl : TransportChoice::local;
}

Execution decided(Execution execution) {
  execution.transport = choose_transport(execution);
  if (execution.table.empty()) {
    execution.table = tuned_table(execution, name_of(execution.transport));
  }
  return execution;
}

const char* name_of(TransportChoice choice) {
  return transport_names()[static_cast<std::size_t>(choice)].c_str();
}

const std::vector<std::string>& transport_names() {
  static const std::vector<std::string> names = {"auto", "local", "shm", "gloo", "mpi", "nccl"};
  return names;
}

TransportChoice transport_named(std::string_view name) {
  const std::vector<std::string>& names = transport_names();
  const auto found = std::find(names.begin(), names.end(), name);
  require(found != names.end(), "transport_named", "the name is one of transport_names()");
  return static_cast<TransportChoice>(found - names.begin());
}

comm::ProcessTransport process_transport(const Execution& execution) {
  if (execution.transport == TransportChoice::gloo) return comm::ProcessTransport::gloo;
  if (execution.transport == TransportChoice::mpi) return comm::ProcessTransport::mpi;
  const bool is_free = execution.any_transport || execution.transport == TransportChoice::nccl;
  return is_free ? comm::ProcessTransport::automatic : comm::ProcessTransport::shm;
}

}  // namespace ringlet::train
