#include "train/transport_choice.h"

#include <algorithm>
#include <string>

#include "comm/all_reduce.h"
#include "comm/nccl_transport.h"
#include "kernels/error.h"

namespace ringlet::train {

namespace {

void require_one_kind(const std::vector<DeviceId>& devices) {
  for (const DeviceId& device : devices) {
    if (device.kind == devices.front().kind) continue;
    throw ContractError("all replicas run on devices of one kind, not on " +
                        devices.front().to_string() + " and " + device.to_string());
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

TransportChoice choose_transport(const Execution& execution, bool in_processes) {
  const std::vector<DeviceId>& devices = execution.devices;
  require_one_kind(devices);
  const bool is_nccls_own = comm::needs_engine(execution.sync);
  const bool needs_memory = comm::needs_peer_access(execution.sync);
  const std::string sync = "--sync " + execution.sync;
  const bool only_nccl = in_processes && devices.front().kind == DeviceKind::cuda;
  if (needs_memory && (in_processes || execution.transport == TransportChoice::nccl)) {
    throw ContractError(sync +
                        " needs replicas that reach each other's memory, the threads of one "
                        "process with --transport local; choose another --sync, ring say");
  }
  switch (execution.transport) {
    case TransportChoice::nccl:
      return require_nccl(devices, "--transport nccl");
    case TransportChoice::local:
      if (is_nccls_own) throw ContractError(sync + " needs --transport nccl");
      if (only_nccl) {
        throw ContractError(
            "--transport local joins the replicas of one process; GPUs of several processes need "
            "--transport nccl");
      }
      return TransportChoice::local;
    case TransportChoice::automatic:
      break;
  }
  if (only_nccl) return require_nccl(devices, "NCCL, which joins GPUs of several processes,");
  if (is_nccls_own) return require_nccl(devices, sync);
  const bool possible = devices.size() > 1 && !needs_memory && why_not_nccl(devices).empty();
  return possible && !comm::nccl_version().empty() ? TransportChoice::nccl : TransportChoice::local;
}

const char* name_of(TransportChoice choice) {
  switch (choice) {
    case TransportChoice::automatic:
      return "auto";
    case TransportChoice::local:
      return "local";
    case TransportChoice::nccl:
      return "nccl";
  }
  return "?";
}

}  // namespace ringlet::train
