#include "app/commands/all_reduce_bench_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "app/cli/checks.h"
#include "app/cli/error_exit.h"
#include "app/cli/option_flags.h"
#include "app/cli/outputs.h"
#include "app/cli/signals.h"
#include "app/cli/usage.h"
#include "app/commands/budget_flags.h"
#include "bench/all_reduce/collective_call.h"
#include "comm/all_reduce/auto.h"
#include "comm/all_reduce/strategies.h"
#include "comm/processes/launch.h"
#include "kernels/cuda_devices.h"
#include "train/sync/transport_choice.h"

namespace ringlet::app {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> strategy_names() {
  const auto names = comm::Strategies().names();
  return {names.begin(), names.end()};
}

constexpr DType kReducedTypes[] = {DType::f32, DType::f16, DType::bf16, DType::i32};

/// With their names.
template <class Values>
auto named(const Values& values) {
  std::vector<std::pair<std::string, std::decay_t<decltype(*std::begin(values))>>> pairs;
  for (const auto& value : values) pairs.emplace_back(name_of(value), value);
  return pairs;
}

train::Option<bench::SizeRange> size_option(const char* key, std::int64_t bench::SizeRange::*field,
                                            const char* short_name, const char* help) {
  return train::named_option<bench::SizeRange>(
      key,
      [field](const bench::SizeRange& range) {
        return range.*field == 0 ? "" : bench::size_text(range.*field);
      },
      [field](bench::SizeRange& range, const std::string& text) {
        range.*field = *bench::parse_size(text);
      },
      {.help = help, .also = short_name, .value_name = "SIZE"});
}

/// The group of the flags that say what is measured.
const char* work_group(const AllReduceFlags& flags) {
  return flags.options.collective().reduces ? "What is reduced" : "What is moved";
}

void add_size_flags(CLI::App& command, AllReduceFlags& flags) {
  using Range = bench::SizeRange;
  add_flags(command, flags.range, work_group(flags),
            {size_option("begin", &Range::begin, "-b", "smallest size in bytes: 4096, 4K, 64M"),
             size_option("end", &Range::end, "-e", "largest size"),
             train::option("factor", &Range::factor,
                           {.help = "each size is the one before times this",
                            .range = train::from(2),
                            .also = "-f"}),
             size_option("step", &Range::step, "-i",
                         "each size is the one before plus this, in place of --factor")});
  for (const char* flag : {"--begin", "--end", "--step"}) {
    command.get_option(flag)->transform(size_in_bytes());
  }
  command.get_option("--step")->excludes(command.get_option("--factor"));
}

/// Out of place where the collective runs in place by itself, else the other way round.
void add_place_flag(CLI::App& command, AllReduceFlags& flags) {
  using enum bench::NaturalPlace;
  constexpr const char* kKeeps =
      "keep the input: copy it to where the result will be, in the timed part; the collectives "
      "themselves are in place";
  constexpr const char* kOverwrites =
      "let the result take the input's place: copy it aside first, in the timed part; the "
      "collective itself needs both";
  const bench::NaturalPlace place = flags.options.collective().place;
  const bool is_apart = place == apart;
  add_flags(command, flags, work_group(flags),
            {train::option(is_apart ? "in_place" : "out_of_place",
                           is_apart ? &AllReduceFlags::in_place : &AllReduceFlags::out_of_place,
                           {.help = is_apart          ? kOverwrites
                                    : place == either ? "keep the input, which needs no copy"
                                                      : kKeeps})});
}

void add_work_flags(CLI::App& command, AllReduceFlags& flags) {
  const char* group = work_group(flags);
  using Options = bench::AllReduceBenchOptions;
  add_flags(command, flags.options, group,
            {train::choice_option("type", &Options::type, named(kReducedTypes),
                                  {.help = "type of the elements", .also = "-d"})});
  if (flags.options.collective().reduces) {
    add_flags(command, flags.options, group,
              {train::choice_option("op", &Options::op, named(kReduceOps),
                                    {.help = "how elements are reduced", .also = "-o"})});
  }
  if (flags.options.collective().has_root) {
    add_flags(command, flags.options, group,
              {train::option(
                  "root", &Options::root,
                  {.help = flags.options.collective().reduces ? "the rank that gets the result"
                                                              : "the rank whose elements all get",
                   .range = train::from(0),
                   .also = "-r"})});
  }
  add_place_flag(command, flags);
}

void add_rank_flags(CLI::App& command, AllReduceFlags& flags, const char* default_ranks) {
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
  add_run_flags(command, flags.run, group, {"transport", "device"});
  command.get_option("--transport")
      ->description(
          "local copies between threads; memory that processes share (shm), Gloo or MPI, with "
          "--processes; or NCCL with a GPU each; auto takes NCCL where it can be had");
  command
      .add_option("--devices", flags.run.devices, "a device for each rank, in place of --device")
      ->delimiter(',')
      ->check(device_name())
      ->type_name("cpu:0,cpu:0,...")
      ->excludes(command.get_option("--device")
                     ->description("device of all ranks; cuda: a GPU for each, from cuda:0 on")
                     ->check(device_name()))
      ->group(group);
}

/// Of the one collective that has several.
void add_strategy_flags(CLI::App& command, AllReduceFlags& flags) {
  if (flags.options.collective_id != bench::CollectiveId::all_reduce) return;
  std::vector<std::string> strategies = strategy_names();
  strategies.insert(strategies.begin(), "all");
  command
      .add_option("--strategies", flags.strategies,
                  "a list of strategies, or all that can run there [all]")
      ->delimiter(',')
      ->check(one_of(strategies))
      ->type_name(fmt::format("{}", fmt::join(strategies, "|")))
      ->group("Ranks");
}

void add_processes_flag(CLI::App& command, AllReduceFlags& flags, const char* help) {
  add_flags(command, flags, "Ranks",
            {train::option("processes", &AllReduceFlags::processes, {.help = help})});
}

void add_timeout_flag(CLI::App& command, AllReduceFlags& flags) {
  constexpr double kShortestTimeout = 0.01;  // seconds
  add_flags(
      command, flags.run.options.execution, "Measurement",
      {train::option("timeout", &train::Execution::comm_timeout,
                     {.help = "seconds that a rank waits for another before it names it and stops",
                      .range = train::from(kShortestTimeout),
                      .also = "--comm-timeout"})});
}

void add_measurement_flags(CLI::App& command, AllReduceFlags& flags) {
  const char* group = "Measurement";
  using Options = bench::AllReduceBenchOptions;
  add_flags(
      command, flags.options, group,
      {train::option("iterations", &Options::iterations,
                     {.help = fmt::format(
                          "timed calls of each size [as many as take {} s, {} to {}]",
                          bench::kSecondsOfASize, bench::kFewestIterations, bench::kMostIterations),
                      .range = train::from(0),
                      .open_at_zero = true,
                      .also = "-n"}),
       train::option("warmup", &Options::warm_up,
                     {.help = "calls before those", .range = train::from(1), .also = "-w"})});
  add_budget_flags(command, flags);
  add_timeout_flag(command, flags);
  add_flags(command, flags.options, group,
            {train::option("pin", &Options::pin,
                           {.help = "let the system move ranks between processors, as in training; "
                                    "else each has one of its own, where there are enough",
                            .form = train::Switch::off}),
             train::option("check", &Options::check,
                           {.help = "do not compare the results with the exact ones",
                            .form = train::Switch::off})});
}

void add_output_flags(CLI::App& command, AllReduceFlags& flags) {
  const char* group = "Files";
  const auto file = [](const char* key, fs::path AllReduceFlags::*field, const std::string& help) {
    return train::option(key, field, {.help = help, .value_name = "FILE"});
  };
  add_flags(command, flags, group,
            {file("json", &AllReduceFlags::json, "write the figures, the models and the machine"),
             file("csv", &AllReduceFlags::csv, "write the figures as comma-separated values"),
             file("trace", &AllReduceFlags::trace,
                  fmt::format("write a timeline of {} more calls of each size and strategy (Chrome "
                              "trace; open it in Perfetto); process N > 0 writes its own, with .pN "
                              "before the extension",
                              bench::kTracedCalls)),
             file("report", &AllReduceFlags::report,
                  "write a page with plots, models and tables; it needs no network")});
  command
      .add_option("--with", flags.with,
                  "compare with the rows of this file too, from --json or of another engine "
                  "(bench/peers); may be given several times")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->group(group);
  add_flags(command, flags, group,
            {train::option("no_measure", &AllReduceFlags::no_measure,
                           {.help = "show only what --with brings"})});
  add_force_flag(command, flags.force)->group(group);
}

}  // namespace

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

void add_all_reduce_flags(CLI::App& command, AllReduceFlags& flags) {
  add_size_flags(command, flags);
  add_work_flags(command, flags);
  add_rank_flags(command, flags, "2");
  add_strategy_flags(command, flags);
  add_processes_flag(command, flags,
                     "each rank is a process instead of a thread, over --transport shm: started "
                     "here, or by torchrun, mpirun or srun, on several machines too");
  add_measurement_flags(command, flags);
  add_output_flags(command, flags);
}

void add_tuning_flags(CLI::App& command, AllReduceFlags& flags) {
  add_size_flags(command, flags);
  add_rank_flags(command, flags, "2,4,8");
  add_processes_flag(command, flags,
                     "be one of the processes that torchrun, mpirun or srun has started, a rank "
                     "each, on several machines too");
  add_budget_flags(command, flags);
  add_timeout_flag(command, flags);
}

namespace {

std::vector<DeviceId> devices_for(const AllReduceFlags& flags, int ranks) {
  RawFlags run = flags.run;
  run.replicas = ranks;
  std::vector<DeviceId> devices = devices_of(run);
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
  if (block.options.collective_id != bench::CollectiveId::all_reduce) {
    block.options.strategies = {bench::kOnlyStrategy};
    return;
  }
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
  AllReduceBlock block{.ranks = ranks, .options = flags.options};
  bench::AllReduceBenchOptions& options = block.options;
  const bench::Collective& collective = options.collective();
  options.in_place = collective.is_in_place() ? !flags.out_of_place : flags.in_place;
  options.budget_seconds = flags.budget_seconds / static_cast<double>(flags.ranks.size());
  options.stop_requested = stop_noted;
  options.execution = execution_for(flags, std::move(devices));
  options.sizes = checked(
      [&] { return bench::sizes_of(flags.range, size_of(options.type), collective.parts(ranks)); });
  if (collective.has_root && options.root >= ranks) {
    throw UsageError(fmt::format("--root {} is none of {} ranks; give one from 0 to {}",
                                 options.root, ranks, ranks - 1));
  }
  checked([&] { return bench::pattern_for(collective, options.type, options.op, 0, ranks); });
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
