// What the flags of `ringlet bench all-reduce` and its like ask for with each number of ranks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "app/cli/error_exit.h"
#include "app/cli/signals.h"
#include "app/cli/usage.h"
#include "app/commands/all_reduce_bench_flags.h"
#include "bench/all_reduce/collective_call.h"
#include "comm/all_reduce/auto.h"
#include "comm/all_reduce/strategies.h"
#include "kernels/cuda_devices.h"
#include "train/sync/transport_choice.h"

namespace ringlet::app {

namespace {

std::vector<DeviceId> devices_for(const AllReduceFlags& flags, int ranks) {
  RawFlags run = flags.run;
  run.replicas = ranks;
  std::vector<DeviceId> devices = devices_of(run);
  if (devices.size() == 1 && ranks > 1) {
    throw UsageError(fmt::format(
        "--devices names one device for {} ranks; name one for each, or give --device {}", ranks,
        devices.front().to_string()));
  }
  if (devices.size() != static_cast<std::size_t>(ranks)) {
    throw UsageError(fmt::format("--devices names {} devices for {} ranks; give --ranks {}",
                                 devices.size(), ranks, devices.size()));
  }
  return devices;
}

bool all_strategies(const AllReduceFlags& flags) {
  return std::find(flags.strategies.begin(), flags.strategies.end(), "all") !=
         flags.strategies.end();
}

/// The transport that `--transport auto` takes for a library's own strategy; nothing for other
/// strategies. `over_gloo`: ranks are processes, on processors.
std::optional<train::TransportChoice> transport_for(const std::string& strategy, bool over_gloo) {
  const comm::Needs needs = comm::Strategies().needs_of(strategy);
  if (!comm::needs_engine(needs)) return {};
  if (over_gloo && comm::runs_on(needs, "gloo")) return train::TransportChoice::gloo;
  if (over_gloo && needs == comm::Needs::mpi) return train::TransportChoice::mpi;
  if (needs == comm::Needs::gloo || needs == comm::Needs::mpi) return {};  // which is told later
  return train::TransportChoice::nccl;
}

train::Execution execution_for(const AllReduceFlags& flags, std::vector<DeviceId> devices) {
  train::Execution execution = flags.run.options.execution;
  execution.sync = comm::AutoAllReduce::kName;
  execution.devices = std::move(devices);
  execution.in_processes = flags.processes;
  execution.overlap = false;  // a call's thread is its rank's: nothing is handed over
  execution.on_hang = end_despite_running_threads;
  execution.any_transport = execution.transport == train::TransportChoice::automatic;
  const bool over_gloo =
      execution.in_processes && execution.devices.front().kind == DeviceKind::cpu;
  std::string asking;  // the strategy that asks for the transport
  for (const std::string& strategy : flags.strategies) {
    if (execution.transport != train::TransportChoice::automatic) break;
    const auto needed = transport_for(strategy, over_gloo);
    if (!needed) continue;
    execution.transport = *needed;
    asking = strategy;
  }
  try {
    execution.transport = train::choose_transport(execution);
  } catch (const ContractError& error) {
    std::string why = error.what();
    const std::string flag = fmt::format("--transport {} ", name_of(execution.transport));
    if (!asking.empty() && why.starts_with(flag)) {  // nobody gave that flag
      why.replace(0, flag.size(), fmt::format("--strategies {} ", asking));
    }
    throw UsageError(why, error.where());
  }
  return execution;
}

/// What the strategy needs and `execution` lacks; "" if it can run.
std::string need_of(const std::string& strategy, const train::Execution& execution) {
  const comm::Needs needs = execution.strategies.needs_of(strategy);
  const bool share_memory = execution.transport == train::TransportChoice::local ||
                            execution.transport == train::TransportChoice::shm;
  // Every process of a benchmark has one rank, so Gloo's and MPI's engines are there.
  const char* const engine = share_memory ? "" : name_of(execution.transport);
  if (comm::needs_engine(needs) && !comm::runs_on(needs, engine)) return comm::engine_need(needs);
  if (needs == comm::Needs::peer_access && !share_memory) return "ranks that share memory";
  return "";
}

/// What `execution` lacks for the strategy, in two words.
const char* lack_of(const std::string& strategy, const train::Execution& execution) {
  switch (execution.strategies.needs_of(strategy)) {
    case comm::Needs::nccl:
      return "no NCCL";
    case comm::Needs::gloo:
      return "no Gloo";
    case comm::Needs::mpi:
      return "no MPI";
    case comm::Needs::any_engine:
      return "neither NCCL, Gloo nor MPI";
    default:
      return "no shared memory";
  }
}

std::vector<std::string> all_names() {
  const auto names = comm::Strategies().names();
  return {names.begin(), names.end()};
}

void choose_strategies(const AllReduceFlags& flags, AllReduceBlock& block) {
  if (block.options.collective_id != bench::CollectiveId::all_reduce) {
    block.options.strategies = {bench::kOnlyStrategy};
    return;
  }
  if (flags.format != BenchFormat::table && !flags.strategies_given) {
    block.options.strategies = {comm::AutoAllReduce::kName};  // which has one row a size
    return;
  }
  const bool all = all_strategies(flags);
  std::map<std::string, std::vector<std::string>> names_by_lack;
  for (const std::string& name : all ? all_names() : flags.strategies) {
    const std::string need = need_of(name, block.options.execution);
    if (need.empty()) {
      block.options.strategies.push_back(name);
    } else if (all) {
      names_by_lack[lack_of(name, block.options.execution)].push_back(name);
    } else {
      throw UsageError(fmt::format("--strategies {} needs {}", name, need));
    }
  }
  for (const auto& [lack, names] : names_by_lack) {
    block.left_out +=
        fmt::format("{}{} ({})", block.left_out.empty() ? "" : ", ", fmt::join(names, ", "), lack);
  }
}

AllReduceBlock block_for(const AllReduceFlags& flags, int ranks, std::vector<DeviceId> devices) {
  AllReduceBlock block{.ranks = ranks, .options = flags.options};
  bench::AllReduceBenchOptions& options = block.options;
  const bench::Collective& collective = options.collective();
  const bool is_apart = flags.format != BenchFormat::table || flags.out_of_place;
  options.in_place = collective.is_in_place() ? !is_apart : flags.in_place;
  block.both_places = flags.format == BenchFormat::nccl;
  options.budget_seconds =
      flags.budget_seconds / static_cast<double>(flags.ranks.size()) / (block.both_places ? 2 : 1);
  options.keep_samples = !flags.raw.empty();
  options.stop_requested = stop_noted;
  options.execution = execution_for(flags, std::move(devices));
  options.sizes = checked(
      [&] { return bench::sizes_of(flags.range, size_of(options.type), collective.parts(ranks)); });
  if (collective.has_root && options.root >= ranks) {
    throw UsageError(fmt::format("--root {} is none of {} ranks; give one from 0 to {}",
                                 options.root, ranks, ranks - 1));
  }
  if (options.check && collective.reduces)
    checked([&] { bench::require_exact(options.type, options.op, ranks); });
  choose_strategies(flags, block);
  return block;
}

}  // namespace

std::vector<AllReduceBlock> all_reduce_blocks(const AllReduceFlags& flags) {
  std::vector<AllReduceBlock> blocks;
  std::set<int> seen;
  for (const int ranks : flags.ranks) {
    if (!seen.insert(ranks).second) {
      throw UsageError(fmt::format("--ranks: {} is there twice; name each number once", ranks));
    }
    blocks.push_back(block_for(flags, ranks, devices_for(flags, ranks)));
  }
  return blocks;
}

AllReduceBlock all_reduce_block_at(const AllReduceFlags& flags,
                                   const comm::ProcessPosition& position) {
  if (position.processes < 2) {
    throw UsageError(fmt::format("{} has started one process, and {} needs two ranks or more",
                                 position.launcher, flags.options.collective().name));
  }
  const std::vector<DeviceId> devices = devices_for(flags, position.processes);
  DeviceId mine = devices[static_cast<std::size_t>(position.process)];
  if (flags.run.devices.empty() && flags.run.device == "cuda") {
    mine.index = comm::first_device(position, 1, cuda_device_count());
  }
  return block_for(flags, position.processes, {mine});
}

AllReduceBlock all_reduce_block_over(const AllReduceFlags& flags,
                                     const comm::ProcessPosition& position, comm::Group& group) {
  AllReduceBlock block = all_reduce_block_at(flags, position);
  const train::Execution& execution = block.options.execution;
  const bool is_for_one_machine =
      execution.any_transport && execution.transport == train::TransportChoice::shm;
  if (group.machines() == 1 || !is_for_one_machine) return block;
  AllReduceFlags between = flags;
  between.run.options.execution.transport = train::TransportChoice::gloo;
  return all_reduce_block_at(between, position);
}

}  // namespace ringlet::app
