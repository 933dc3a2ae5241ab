// ringlet bench all-reduce, and the same of the other collectives
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "app/cli/before_meeting.h"
#include "app/cli/commands.h"
#include "app/cli/outputs.h"
#include "app/cli/processes.h"
#include "app/cli/signals.h"
#include "app/cli/usage.h"
#include "app/commands/all_reduce_bench_flags.h"
#include "app/commands/bench_results.h"
#include "app/commands/budget_flags.h"
#include "bench/all_reduce/comparison.h"
#include "bench/all_reduce/machine.h"
#include "bench/all_reduce/measure.h"
#include "bench/all_reduce/samples.h"
#include "comm/all_reduce/auto.h"
#include "comm/transport/local/local_transport.h"
#include "train/sync/transport_choice.h"
#include "train/sync/tuning.h"

namespace ringlet::app {

namespace {

namespace fs = std::filesystem;

std::string text_of(const std::optional<bench::CoreDistance>& distance) {
  if (!distance) return "the cores' distance is not known (there is one, or they are busy)";
  return fmt::format("cores {:.0f} ns apart ({})", distance->nanoseconds, distance->word());
}

std::optional<bench::CoreDistance> measure_distance(BenchOutcome& outcome) {
  const std::optional<bench::CoreDistance> distance = bench::measure_core_distance();
  if (distance) outcome.distances.push_back(*distance);
  return distance;
}

/// What the rows of a level are, of ranks on several machines.
std::string text_of(const bench::Measurement& row) {
  if (row.level == "inside") return fmt::format("inside a machine, {} ranks of each", row.ranks);
  if (row.level == "between") {
    return fmt::format("between machines, each rank with its {} on the others, all at once",
                       row.ranks == 2 ? "like" : "likes");
  }
  return fmt::format("all {} ranks", row.ranks);
}

void print_row(const People& people, const bench::Measurement& row) {
  people.say("{}", bench::table_row(row));
  people.flush();
}

/// Of several processes, one prints.
void run_block(comm::Group& group, const AllReduceBlock& block, const People& people,
               BenchOutcome& outcome, train::TraceWriter* trace) {
  const bench::AllReduceBenchOptions& options = block.options;
  bench::AllReduceBenchOptions other_place = options;
  other_place.in_place = !options.in_place;
  if (group.process() != 0) {
    bench::measure_all_reduce(group, options, {}, trace);
    if (block.both_places) bench::measure_all_reduce(group, other_place, {}, trace);
    return;
  }
  const std::optional<bench::CoreDistance> before = measure_distance(outcome);
  people.say("{} ranks as {} on {}, {} transport, {}{}{}; {}\n", block.ranks, options.ranks_as(),
             options.execution.devices.front().to_string(),
             train::tuned_transport(group.transport(0), name_of(options.execution.transport)),
             options.in_place ? "in place" : "out of place",
             options.collective().has_root ? fmt::format(", root {}", options.root) : "",
             bench::pins_ranks(options, block.ranks) ? ", pinned" : "", text_of(before));
  if (!block.left_out.empty()) people.say("cannot run here: {}\n", block.left_out);
  if (group.machines() > 1) people.say("{}\n", group.transport(0).hosts());
  const auto& names = options.strategies;
  const bool has_auto =
      std::find(names.begin(), names.end(), comm::AutoAllReduce::kName) != names.end();
  const std::string foreign = has_auto ? train::why_foreign(train::tuning_file()) : "";
  if (!foreign.empty()) people.say("{}\n", foreign);
  std::string level;
  const auto print = [&](const bench::Measurement& row) {
    if (row.machines > 1 && row.level != level) people.say("\n{}\n", text_of(row));
    if (row.level != level) people.say("{}", bench::table_heading());
    level = row.level;
    print_row(people, row);
  };
  auto rows = bench::measure_all_reduce(group, options, print, trace);
  if (block.both_places) {
    const auto others = bench::measure_all_reduce(group, other_place, print, trace);
    rows.insert(rows.end(), others.begin(), others.end());
  }
  outcome.rows.insert(outcome.rows.end(), rows.begin(), rows.end());
  outcome.raw += bench::raw_lines(rows);
  const std::optional<bench::CoreDistance> after = measure_distance(outcome);
  if (before && after && before->near() != after->near()) {
    people.say("meanwhile they have moved: {}\n", text_of(after));
  }
  if (const std::string busy = busy_line(rows); !busy.empty()) people.say("\n{}", busy);
  if (const std::string late = bench::late_text(rows); !late.empty()) people.say("\n{}\n", late);
  for (const bench::Comparison& comparison : bench::compare(rows)) {
    const std::string text = to_text(comparison);
    if (text.empty()) continue;  // of a size
    people.say(
        "\n{}{}\n",
        comparison.machines > 1 ? text_of(comparison.series.front().rows.front()) + "\n" : "",
        text);
  }
  people.flush();
}

/// Without a limit: bench::kTracedCalls is one.
std::unique_ptr<train::TraceWriter> tracer_of(const AllReduceFlags& flags) {
  return flags.trace.empty() ? nullptr : std::make_unique<train::TraceWriter>(0);
}

/// Surveys the machine before the measurement, but only for an output that shows it.
std::optional<bench::MachineRecord> machine_of(const AllReduceFlags& flags) {
  if (flags.json.empty() && flags.report.empty()) return {};
  return bench::survey_machine();
}

int run_in_threads(const AllReduceFlags& flags, const CLI::App& command) {
  const std::vector<AllReduceBlock> blocks = all_reduce_blocks(flags);
  check_bench_outputs(flags, command, 1);
  const OtherRows others = read_others(flags);
  const std::optional<bench::MachineRecord> machine = machine_of(flags);
  const auto trace = tracer_of(flags);
  note_stop_signals();
  const People people(flags);
  BenchOutcome outcome;
  people.announce(time_text(flags, blocks));
  train::traced(trace.get(), flags.trace, {}, [&] {
    for (const AllReduceBlock& block : blocks) {
      comm::LocalGroup group(block.ranks);
      run_block(group, block, people, outcome, trace.get());
    }
  });
  if (trace) {
    trace->write(flags.trace);
    people.say("{}", where_traces_are(flags.trace, false));
  }
  write_bench_outputs(flags, outcome, others, machine);
  require_right(outcome.rows);
  return exit_code(flags, outcome.rows);
}

/// Measures as the process at `position`. A process that this program has started leaves its rows
/// to it.
int run_as_rank(const AllReduceFlags& flags, const CLI::App& command,
                const comm::ProcessPosition& position) {
  const auto rows_file = RowsFile::given();
  const People people(flags);
  std::optional<bench::MachineRecord> machine;
  OtherRows others;
  const AllReduceBlock planned = before_meeting(position, [&] {
    AllReduceBlock block = all_reduce_block_at(flags, position);
    if (position.process == 0 && !rows_file) {
      check_bench_outputs(flags, command, position.processes);
      others = read_others(flags);
      machine = machine_of(flags);
    }
    if (position.process != 0 && !rows_file && !flags.trace.empty()) {
      Outputs(command, flags.force)
          .writes("--trace", file_of_process(flags.trace, position.process));
    }
    return block;
  });
  return run_as_process(position, planned.options.execution, [&](comm::Group& group) {
    const AllReduceBlock block = all_reduce_block_over(flags, position, group);
    const auto trace = tracer_of(flags);
    BenchOutcome outcome;
    if (position.process == 0 && !rows_file) people.announce(time_text(flags, {block}));
    const fs::path timeline = file_of_process(flags.trace, group.process());
    train::traced(trace.get(), timeline, group, block.options.execution.comm_timeout,
                  [&] { run_block(group, block, people, outcome, trace.get()); });
    if (position.process != 0) return 0;
    if (trace) people.say("{}", where_traces_are(flags.trace, true));
    if (rows_file) {
      RowsFile::write(*rows_file, outcome);
    } else {
      write_bench_outputs(flags, outcome, others, machine);
      require_right(outcome.rows);
      return exit_code(flags, outcome.rows);
    }
    return 0;
  });
}

/// Starts the processes of each number of ranks in turn.
int run_families(const AllReduceFlags& flags, const CLI::App& command) {
  const std::vector<AllReduceBlock> blocks = all_reduce_blocks(flags);  // or it throws, once
  check_bench_outputs(flags, command, flags.ranks.front());
  const OtherRows others = read_others(flags);
  const std::optional<bench::MachineRecord> machine = machine_of(flags);
  const People people(flags);
  BenchOutcome outcome;
  for (const int ranks : flags.ranks) {
    const RowsFile file;
    if (outcome.rows.empty()) {
      people.announce(time_text(flags, blocks));
    }
    const int code = start_processes(ranks);
    if (code != 0) return code;
    file.add_to(outcome);
  }
  write_bench_outputs(flags, outcome, others, machine);
  require_right(outcome.rows);
  return exit_code(flags, outcome.rows);
}

/// For --with alone: shows only what was measured before.
int show_others(const AllReduceFlags& flags, const CLI::App& command) {
  if (flags.with.empty()) throw UsageError("--no-measure leaves nothing to show without --with");
  if (!flags.json.empty() || !flags.csv.empty() || !flags.raw.empty() || !flags.trace.empty()) {
    throw UsageError("--no-measure writes nothing but --report");
  }
  check_bench_outputs(flags, command, 1);
  const OtherRows others = read_others(flags);
  write_bench_outputs(flags, {}, others, {});
  require_right(others.rows);
  return exit_code(flags, others.rows);
}

int run_all_reduce_bench(const AllReduceFlags& flags, const CLI::App& command) {
  if (flags.no_measure) return show_others(flags, command);
  if (!flags.processes) return run_in_threads(flags, command);
  const auto position = checked([] { return comm::position_from_environment(); });
  return position ? run_as_rank(flags, command, *position) : run_families(flags, command);
}

}  // namespace

namespace {

/// How busbw is made of algbw: "algbw x 2 (p-1)/p for p ranks".
std::string busbw_text(const bench::Collective& collective) {
  if (collective.bus_passes == 0) return "algbw";
  return fmt::format("algbw x {}(p-1)/p for p ranks", collective.bus_passes == 1 ? "" : "2 ");
}

std::string footer_of(const bench::Collective& collective) {
  return fmt::format(
      "{}algbw is size / time, busbw {}, in 1e9 bytes a second. Inputs\n"
      "are rewritten before each call and results read within it; a call takes as long as its\n"
      "slowest rank. Results are compared with the exact ones: each up to 4M, beyond that the\n"
      "first and the last of a size. Rows that other work on the machine disturbs are measured\n"
      "again, and else say that they do not count: no model and no winner is made of them.\n",
      collective.has_parts ? "The size is that of all ranks' parts together, as in nccl-tests.\n"
                           : "",
      busbw_text(collective));
}

void add_command(CLI::App& bench, const bench::Collective& collective, Action& action) {
  auto flags = std::make_shared<AllReduceFlags>();
  flags->options.collective_id = collective.id;
  const bool is_all_reduce = collective.id == bench::CollectiveId::all_reduce;
  CLI::App* command = bench.add_subcommand(
      collective.name,
      is_all_reduce ? "every strategy's time and bandwidth by size, checked, with fitted models"
                    : fmt::format("{}: time and bandwidth, checked", collective.summary));
  add_all_reduce_flags(*command, *flags);
  command->footer(footer_of(collective));
  command->callback([flags, command, &action] {
    const CLI::Option* const strategies = command->get_option_no_throw("--strategies");
    flags->strategies_given = strategies != nullptr && strategies->count() > 0;
    action = [=] { return run_all_reduce_bench(*flags, *command); };
  });
}

}  // namespace

void add_bench_collective_commands(CLI::App& bench, Action& action) {
  for (const bench::Collective& collective : bench::collectives()) {
    add_command(bench, collective, action);
  }
}

}  // namespace ringlet::app
