#include "app/commands/all_reduce_bench_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "app/cli/checks.h"
#include "app/cli/error_exit.h"
#include "app/cli/outputs.h"
#include "app/cli/signals.h"
#include "app/cli/usage.h"
#include "bench/all_reduce/test_pattern.h"
#include "comm/all_reduce/strategies.h"
#include "comm/processes/launch.h"
#include "kernels/cuda_devices.h"
#include "train/sync/transport_choice.h"

namespace ringlet::app {

namespace {

constexpr DType kReducedTypes[] = {DType::f32, DType::f16, DType::bf16, DType::i32};

template <class Values>
std::vector<std::string> names_of(const Values& values) {
  std::vector<std::string> names;
  for (const auto& value : values) names.emplace_back(name_of(value));
  return names;
}

template <class Values>
auto value_named(const std::string& name, const Values& values) {
  return *std::find_if(std::begin(values), std::end(values),
                       [&](auto value) { return name == name_of(value); });
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const auto name : comm::Strategies().names()) names.emplace_back(name);
  return names;
}

std::string alternatives(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, "|"));
}

/// 4096, 4K, 64M, 1G; the text becomes a number.
CLI::Validator size_in_bytes() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        const auto size = bench::parse_size(text);
        if (!size || *size < 1) return fmt::format("'{}' is no size such as 4096, 4K or 64M", text);
        text = fmt::format("{}", *size);
        return {};
      },
      "");
}

void add_size_flags(CLI::App& command, AllReduceFlags& flags) {
  const char* group = "What is reduced";
  command.add_option("-b,--begin", flags.range.begin, "smallest size in bytes: 4096, 4K, 64M")
      ->transform(size_in_bytes())
      ->type_name("SIZE")
      ->default_str(bench::size_text(flags.range.begin))
      ->group(group);
  command.add_option("-e,--end", flags.range.end, "largest size")
      ->transform(size_in_bytes())
      ->type_name("SIZE")
      ->default_str(bench::size_text(flags.range.end))
      ->group(group);
  auto* factor =
      command
          .add_option("-f,--factor", flags.range.factor, "each size is the one before times this")
          ->check(whole_number(2))
          ->capture_default_str()
          ->group(group);
  command
      .add_option("-i,--step", flags.range.step,
                  "each size is the one before plus this, in place of --factor")
      ->transform(size_in_bytes())
      ->type_name("SIZE")
      ->excludes(factor)
      ->group(group);
}

void add_work_flags(CLI::App& command, AllReduceFlags& flags) {
  const char* group = "What is reduced";
  const std::vector<std::string> types = names_of(kReducedTypes), ops = names_of(kReduceOps);
  command.add_option("-d,--type", flags.type, "type of the elements")
      ->check(one_of(types))
      ->type_name(alternatives(types))
      ->capture_default_str()
      ->group(group);
  command.add_option("-o,--op", flags.op, "how elements are reduced")
      ->check(one_of(ops))
      ->type_name(alternatives(ops))
      ->capture_default_str()
      ->group(group);
  command
      .add_flag("--out-of-place", flags.out_of_place,
                "keep the input: copy it to where the result will be, in the timed part; the "
                "collectives themselves are in place")
      ->group(group);
}

void add_place_flags(CLI::App& command, AllReduceFlags& flags, const char* default_ranks) {
  const char* group = "Ranks";
  constexpr int kMost = 1024;
  command
      .add_option(
          "--ranks", flags.ranks,
          fmt::format("number of ranks; several numbers are measured in turn [{}]", default_ranks))
      ->delimiter(',')
      ->check(whole_number(2, kMost))
      ->type_name("N,N,...")
      ->group(group);
  command
      .add_option("--transport", flags.transport,
                  "local copies between threads; memory that processes share (shm), Gloo or MPI, "
                  "with --processes; or NCCL with a GPU each; auto takes NCCL where it can be had")
      ->check(one_of(train::transport_names()))
      ->type_name(fmt::format("{}", fmt::join(train::transport_names(), "|")))
      ->capture_default_str()
      ->group(group);
  auto* device = command
                     .add_option("--device", flags.device,
                                 "device of all ranks; cuda: a GPU for each, from cuda:0 on")
                     ->check(device_name())
                     ->type_name("DEVICE")
                     ->capture_default_str()
                     ->group(group);
  command.add_option("--devices", flags.devices, "a device for each rank, in place of --device")
      ->delimiter(',')
      ->check(device_name())
      ->type_name("cpu:0,cpu:0,...")
      ->excludes(device)
      ->group(group);
}

void add_strategy_flags(CLI::App& command, AllReduceFlags& flags) {
  std::vector<std::string> strategies = strategy_names();
  strategies.insert(strategies.begin(), "all");
  command
      .add_option("--strategies", flags.strategies,
                  "a list of strategies, or all that can run there [all]")
      ->delimiter(',')
      ->check(one_of(strategies))
      ->type_name(alternatives(strategies))
      ->group("Ranks");
}

void add_processes_flag(CLI::App& command, AllReduceFlags& flags, const char* help) {
  command.add_flag("--processes", flags.processes, help)->group("Ranks");
}

void add_timeout_flag(CLI::App& command, AllReduceFlags& flags) {
  const char* group = "Measurement";
  constexpr double kShortestTimeout = 0.01;  // seconds
  command
      .add_option("--timeout,--comm-timeout", flags.timeout,
                  "seconds that a rank waits for another before it names it and stops")
      ->check(number(kShortestTimeout))
      ->capture_default_str()
      ->group(group);
}

void add_measurement_flags(CLI::App& command, AllReduceFlags& flags) {
  const char* group = "Measurement";
  command
      .add_option(
          "-n,--iterations", flags.iterations,
          fmt::format("timed calls of each size [as many as take {} s, {} to {}]",
                      bench::kSecondsOfASize, bench::kFewestIterations, bench::kMostIterations))
      ->check(whole_number(1))
      ->group(group);
  command.add_option("-w,--warmup", flags.warm_up, "calls before those")
      ->check(whole_number(1))
      ->capture_default_str()
      ->group(group);
  add_timeout_flag(command, flags);
  command
      .add_flag("--no-pin", flags.no_pin,
                "let the system move ranks between processors, as in training; else each has one "
                "of its own, where there are enough")
      ->group(group);
  command.add_flag("--no-check", flags.no_check, "do not compare the results with the exact ones")
      ->group(group);
}

void add_output_flags(CLI::App& command, AllReduceFlags& flags) {
  const char* group = "Files";
  command.add_option("--json", flags.json, "write the figures, the models and the machine")
      ->type_name("FILE")
      ->group(group);
  command.add_option("--csv", flags.csv, "write the figures as comma-separated values")
      ->type_name("FILE")
      ->group(group);
  command
      .add_option("--trace", flags.trace,
                  fmt::format("write a timeline of {} more calls of each size and strategy "
                              "(Chrome trace; open it in Perfetto); process N > 0 writes its "
                              "own, with .pN before the extension",
                              bench::kTracedCalls))
      ->type_name("FILE")
      ->group(group);
  command
      .add_option("--report", flags.report,
                  "write a page with plots, models and tables; it needs no network")
      ->type_name("FILE")
      ->group(group);
  command
      .add_option("--with", flags.with,
                  "compare with the rows of this file too, from --json or of another engine "
                  "(bench/peers); may be given several times")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->group(group);
  command.add_flag("--no-measure", flags.no_measure, "show only what --with brings")->group(group);
  add_force_flag(command, flags.force)->group(group);
}

}  // namespace

void add_all_reduce_flags(CLI::App& command, AllReduceFlags& flags) {
  add_size_flags(command, flags);
  add_work_flags(command, flags);
  add_place_flags(command, flags, "2");
  add_strategy_flags(command, flags);
  add_processes_flag(command, flags,
                     "each rank is a process instead of a thread, over --transport shm: started "
                     "here, or by torchrun, mpirun or srun, on several machines too");
  add_measurement_flags(command, flags);
  add_output_flags(command, flags);
}

void add_tuning_flags(CLI::App& command, AllReduceFlags& flags) {
  add_size_flags(command, flags);
  add_place_flags(command, flags, "2,4,8");
  add_processes_flag(command, flags,
                     "be one of the processes that torchrun, mpirun or srun has started, a rank "
                     "each, on several machines too");
  add_timeout_flag(command, flags);
}

namespace {

std::vector<DeviceId> devices_for(const AllReduceFlags& flags, int ranks) {
  std::vector<DeviceId> devices;
  for (const std::string& name : flags.devices) devices.push_back(DeviceId::parse(name));
  if (devices.empty()) {
    devices.assign(static_cast<std::size_t>(ranks), DeviceId::parse(flags.device));
    for (int rank = 0; flags.device == "cuda" && rank < ranks; ++rank) {
      devices[static_cast<std::size_t>(rank)].index = rank;
    }
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
  train::Execution execution;
  execution.devices = std::move(devices);
  execution.in_processes = flags.processes;
  execution.overlap = false;  // a call's thread is its rank's: nothing is handed over
  execution.comm_timeout = flags.timeout;
  execution.on_hang = end_despite_running_threads;
  execution.transport = train::transport_named(flags.transport);
  execution.any_transport = execution.transport == train::TransportChoice::automatic;
  const bool over_gloo =
      execution.in_processes && execution.devices.front().kind == DeviceKind::cpu;
  for (const std::string& strategy : flags.strategies) {
    if (execution.transport != train::TransportChoice::automatic) break;
    const auto needed = transport_for(strategy, over_gloo);
    if (needed) execution.transport = *needed;
  }
  execution.transport = checked([&] { return train::choose_transport(execution); });
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

void choose_strategies(const AllReduceFlags& flags, AllReduceBlock& block) {
  const bool all = all_strategies(flags);
  std::map<std::string, std::vector<std::string>> names_by_lack;
  for (const std::string& name : all ? strategy_names() : flags.strategies) {
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
  AllReduceBlock block{.ranks = ranks};
  bench::AllReduceBenchOptions& options = block.options;
  options.type = value_named(flags.type, kReducedTypes);
  options.op = value_named(flags.op, kReduceOps);
  options.in_place = !flags.out_of_place;
  options.warm_up = flags.warm_up;
  options.iterations = flags.iterations;
  options.pin = !flags.no_pin;
  options.check = !flags.no_check;
  options.stop_requested = stop_noted;
  options.execution = execution_for(flags, std::move(devices));
  options.sizes = checked([&] { return bench::sizes_of(flags.range, size_of(options.type)); });
  checked([&] { return bench::TestPattern(options.type, options.op, 0, ranks); });
  choose_strategies(flags, block);
  return block;
}

}  // namespace

std::vector<AllReduceBlock> all_reduce_blocks(const AllReduceFlags& flags) {
  std::vector<AllReduceBlock> blocks;
  for (const int ranks : flags.ranks) {
    blocks.push_back(block_for(flags, ranks, devices_for(flags, ranks)));
  }
  return blocks;
}

AllReduceBlock all_reduce_block_at(const AllReduceFlags& flags, const comm::ProcessPlace& place) {
  const std::vector<DeviceId> devices = devices_for(flags, place.processes);
  DeviceId mine = devices[static_cast<std::size_t>(place.process)];
  if (flags.devices.empty() && flags.device == "cuda") {
    mine.index = comm::first_device(place, 1, cuda_device_count());
  }
  return block_for(flags, place.processes, {mine});
}

AllReduceBlock all_reduce_block_over(const AllReduceFlags& flags, const comm::ProcessPlace& place,
                                     comm::Group& group) {
  AllReduceBlock block = all_reduce_block_at(flags, place);
  const train::Execution& execution = block.options.execution;
  const bool is_for_one_machine =
      execution.any_transport && execution.transport == train::TransportChoice::shm;
  if (group.machines() == 1 || !is_for_one_machine) return block;
  AllReduceFlags between = flags;
  between.transport = "gloo";
  return all_reduce_block_at(between, place);
}

}  // namespace ringlet::app
