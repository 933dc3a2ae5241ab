// ringlet bench all-reduce, and the same of the other collectives
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/cli/before_meeting.h"
#include "app/cli/commands.h"
#include "app/cli/outputs.h"
#include "app/cli/processes.h"
#include "app/cli/signals.h"
#include "app/cli/standard_output.h"
#include "app/cli/usage.h"
#include "app/cli/version.h"
#include "app/commands/all_reduce_bench_flags.h"
#include "app/commands/budget_flags.h"
#include "app/report/all_reduce_page.h"
#include "base/files/atomic_file.h"
#include "base/files/input_file.h"
#include "base/files/json_text.h"
#include "base/machine.h"
#include "base/one_line.h"
#include "bench/all_reduce/comparison.h"
#include "bench/all_reduce/machine.h"
#include "bench/all_reduce/measure.h"
#include "comm/transport/local/local_transport.h"
#include "train/sync/transport_choice.h"
#include "train/sync/tuning.h"

namespace ringlet::app {

namespace {

namespace fs = std::filesystem;

/// The first of the processes that this one starts writes its rows to the file that this variable
/// names.
constexpr const char* kRowsVariable = "RINGLET_ALL_REDUCE_ROWS";

/// Some rank got another result than the exact one, or than its peers.
class WrongResults : public Error {
 public:
  using Error::Error;
};

/// What all blocks together gave.
struct Outcome {
  std::vector<bench::Measurement> rows;
  std::vector<bench::CoreDistance> distances;
};

std::string text_of(const std::optional<bench::CoreDistance>& distance) {
  if (!distance) return "the cores' distance is not known (there is one, or they are busy)";
  return fmt::format("cores {:.0f} ns apart ({})", distance->nanoseconds, distance->word());
}

std::optional<bench::CoreDistance> measure_distance(Outcome& outcome) {
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

void print_row(const bench::Measurement& row) {
  fmt::print("{}", bench::table_row(row));
  if (row.ranks_differ()) {
    fmt::print("{:>10} the ranks' results differ, by their hashes: {}\n", "",
               fmt::join(row.hashes, ", "));
  }
  std::fflush(stdout);
}

/// Of several processes, one prints.
void run_block(comm::Group& group, const AllReduceBlock& block, Outcome& outcome,
               train::TraceWriter* trace) {
  const bench::AllReduceBenchOptions& options = block.options;
  if (group.process() != 0) {
    bench::measure_all_reduce(group, options, {}, trace);
    return;
  }
  const std::optional<bench::CoreDistance> before = measure_distance(outcome);
  fmt::print("{} ranks as {} on {}, {} transport, {}{}{}; {}\n", block.ranks, options.ranks_as(),
             options.execution.devices.front().to_string(),
             train::tuned_transport(group.transport(0), name_of(options.execution.transport)),
             options.in_place ? "in place" : "out of place",
             options.collective().has_root ? fmt::format(", root {}", options.root) : "",
             bench::pins_ranks(options, block.ranks) ? ", pinned" : "", text_of(before));
  if (!block.left_out.empty()) fmt::print("cannot run here: {}\n", block.left_out);
  if (group.machines() > 1) fmt::print("{}\n", group.transport(0).hosts());
  std::string level;
  const auto print = [&](const bench::Measurement& row) {
    if (row.machines > 1 && row.level != level) fmt::print("\n{}\n", text_of(row));
    if (row.level != level) fmt::print("{}", bench::table_heading());
    level = row.level;
    print_row(row);
  };
  const auto rows = bench::measure_all_reduce(group, options, print, trace);
  outcome.rows.insert(outcome.rows.end(), rows.begin(), rows.end());
  const std::optional<bench::CoreDistance> after = measure_distance(outcome);
  if (before && after && before->near() != after->near()) {
    fmt::print("meanwhile they have moved: {}\n", text_of(after));
  }
  if (const std::string busy = busy_line(rows); !busy.empty()) fmt::print("\n{}", busy);
  for (const bench::Comparison& comparison : bench::compare(rows)) {
    fmt::print(
        "\n{}{}\n",
        comparison.machines > 1 ? text_of(comparison.series.front().rows.front()) + "\n" : "",
        to_text(comparison));
  }
  std::fflush(stdout);
}

nlohmann::json outcome_json(const Outcome& outcome) {
  nlohmann::json rows = nlohmann::json::array(), distances = nlohmann::json::array();
  for (const bench::Measurement& row : outcome.rows) rows.push_back(to_json(row));
  for (const bench::CoreDistance& distance : outcome.distances)
    distances.push_back(distance.nanoseconds);
  return {{"rows", rows}, {"distances", distances}};
}

/// Rows of the files of --with, and the machines that they were measured on.
struct Others {
  std::vector<bench::Measurement> rows;
  std::vector<nlohmann::json> machines;
};

Others read_others(const AllReduceFlags& flags) {
  Others others;
  for (const fs::path& file : flags.with) {
    const auto rows = bench::read_measurements(file);
    others.rows.insert(others.rows.end(), rows.begin(), rows.end());
    const nlohmann::json machine = bench::read_machine(file);
    if (!machine.is_null()) others.machines.push_back(machine);
  }
  return others;
}

/// The rows of --with, and which rows are the fastest of all.
void print_others(const Outcome& outcome, const Others& others) {
  if (others.rows.empty()) return;
  std::vector<bench::Measurement> all = outcome.rows;
  all.insert(all.end(), others.rows.begin(), others.rows.end());
  for (const bench::Comparison& comparison : bench::compare(others.rows)) {
    fmt::print("{} ranks, {}, by --with\n{}", comparison.ranks, work_text(comparison),
               bench::table_heading(bench::label_width(comparison)));
    for (const bench::Series& series : comparison.series) {
      for (bench::Measurement row : series.rows) {
        row.strategy = series.label;
        fmt::print("{}", bench::table_row(row, bench::label_width(comparison)));
      }
    }
    fmt::print("\n");
  }
  fmt::print("{}", busy_line(others.rows));
  for (const bench::Comparison& comparison : bench::compare(all)) {
    fmt::print("all of {} ranks, {}\n{}\n", comparison.ranks, work_text(comparison),
               to_text(comparison));
  }
}

void write_report(const fs::path& file, const Outcome& outcome, const Others& others,
                  const nlohmann::json& machine) {
  std::vector<bench::Measurement> rows = outcome.rows;
  rows.insert(rows.end(), others.rows.begin(), others.rows.end());
  const bool theirs = machine.is_null() && !others.machines.empty();
  const std::string page =
      report::all_reduce_page(rows, theirs ? others.machines.front() : machine);
  write_file_atomically(file, page);
  fmt::print("wrote {} ({} KiB); open it in a browser\n", on_one_line(file.string()),
             (page.size() + 1023) / 1024);
}

void write_outputs(const AllReduceFlags& flags, const Outcome& outcome, const Others& others,
                   std::optional<bench::MachineRecord> machine) {
  print_if_possible([&] { print_others(outcome, others); });
  nlohmann::json machine_json;
  if (machine) {
    machine->distances = outcome.distances;
    machine_json = to_json(*machine);
  }
  if (!flags.json.empty()) {
    const std::vector<bench::Comparison> comparisons = bench::compare(outcome.rows);
    const auto counting = std::count_if(outcome.rows.begin(), outcome.rows.end(),
                                        [](const bench::Measurement& row) { return row.counts; });
    const nlohmann::json json = {{"build", build_facts()},
                                 {"busy", bench::not_counting(outcome.rows)},
                                 {"counting_rows", counting},
                                 {"machine", machine_json},
                                 {"rows", outcome_json(outcome).at("rows")},
                                 {"models", bench::models_json(comparisons)},
                                 {"fastest", bench::fastest_json(comparisons)},
                                 {"regrets", bench::regrets_json(comparisons)}};
    write_file_atomically(flags.json, row_a_line(json));
  }
  if (!flags.csv.empty()) write_file_atomically(flags.csv, bench::to_csv(outcome.rows));
  if (!flags.report.empty()) write_report(flags.report, outcome, others, machine_json);
}

void require_right(const std::vector<bench::Measurement>& rows) {
  const bench::Measurement* first = nullptr;
  std::size_t wrong = 0;
  for (const bench::Measurement& row : rows) {
    if (row.right()) continue;
    ++wrong;
    if (first == nullptr) first = &row;
  }
  if (wrong == 0) return;
  throw WrongResults(fmt::format(
      "{} of {} rows have wrong results, the first {} of {} bytes over {} ranks: {}; the table has "
      "all of them",
      wrong, rows.size(), first->strategy, first->bytes, first->ranks,
      first->wrong > 0 ? fmt::format("{} wrong elements", first->wrong)
                       : std::string("the ranks' results differ")));
}

/// Fails before the measurement where its results could not be written after it, or would replace
/// what they should not. `processes`: how many write a trace.
void check_outputs(const AllReduceFlags& flags, const CLI::App& command, int processes) {
  if (flags.processes && flags.ranks.size() > 1 && !flags.trace.empty()) {
    throw UsageError("--trace with --processes takes one number of --ranks");
  }
  Outputs outputs(command, flags.force);
  for (const fs::path& file : flags.with) outputs.reads("--with", file);
  outputs.writes("--json", flags.json);
  outputs.writes("--csv", flags.csv);
  outputs.writes("--report", flags.report);
  for (int process = 0; process < processes && !flags.trace.empty(); ++process) {
    outputs.writes("--trace", file_of_process(flags.trace, process));
  }
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
  check_outputs(flags, command, 1);
  const Others others = read_others(flags);
  const std::optional<bench::MachineRecord> machine = machine_of(flags);
  const auto trace = tracer_of(flags);
  note_stop_signals();
  Outcome outcome;
  fmt::print("{}\n", time_text(flags, blocks));
  train::traced(trace.get(), flags.trace, {}, [&] {
    for (const AllReduceBlock& block : blocks) {
      comm::LocalGroup group(block.ranks);
      run_block(group, block, outcome, trace.get());
    }
  });
  if (trace) {
    trace->write(flags.trace);
    fmt::print("{}", where_traces_are(flags.trace, false));
  }
  write_outputs(flags, outcome, others, machine);
  require_right(outcome.rows);
  return exit_code(flags, outcome.rows);
}

/// Measures as the process at `position`. A process that this program has started leaves its rows
/// to it.
int run_as_rank(const AllReduceFlags& flags, const CLI::App& command,
                const comm::ProcessPosition& position) {
  const auto rows_file = comm::environment_variable(kRowsVariable);
  std::optional<bench::MachineRecord> machine;
  Others others;
  const AllReduceBlock planned = before_meeting(position, [&] {
    AllReduceBlock block = all_reduce_block_at(flags, position);
    if (position.process == 0 && !rows_file) {
      check_outputs(flags, command, position.processes);
      others = read_others(flags);
      machine = machine_of(flags);
    }
    return block;
  });
  return run_as_process(position, planned.options.execution, [&](comm::Group& group) {
    const AllReduceBlock block = all_reduce_block_over(flags, position, group);
    const auto trace = tracer_of(flags);
    Outcome outcome;
    if (position.process == 0 && !rows_file) fmt::print("{}\n", time_text(flags, {block}));
    const fs::path timeline = file_of_process(flags.trace, group.process());
    train::TraceSource source{group.process(), host_name(), {}};
    const auto read_clock = [&] {
      if (trace) source.clock.push_back(group.read_clock(block.options.execution.comm_timeout));
    };
    read_clock();
    train::traced(trace.get(), timeline, source,
                  [&] { run_block(group, block, outcome, trace.get()); });
    read_clock();
    if (trace) trace->write(timeline, source);
    if (position.process != 0) return 0;
    if (trace) fmt::print("{}", where_traces_are(flags.trace, true));
    if (rows_file) {
      write_file_atomically(*rows_file, outcome_json(outcome).dump());
    } else {
      write_outputs(flags, outcome, others, machine);
      require_right(outcome.rows);
      return exit_code(flags, outcome.rows);
    }
    return 0;
  });
}

/// A file that lives as long as the object, and whose name the processes get.
class RowsFile {
 public:
  RowsFile() {
    const int descriptor = mkstemp(name_.data());
    if (descriptor < 0) throw FileError(name_ + " cannot be created; is TMPDIR writable?");
    close(descriptor);
    setenv(kRowsVariable, name_.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread
  }
  ~RowsFile() {
    std::error_code error;
    fs::remove(name_, error);
    unsetenv(kRowsVariable);  // NOLINT(concurrency-mt-unsafe): one thread
  }
  RowsFile(const RowsFile&) = delete;
  RowsFile& operator=(const RowsFile&) = delete;

  void add_to(Outcome& outcome) const {
    const auto rows = bench::read_measurements(name_);
    outcome.rows.insert(outcome.rows.end(), rows.begin(), rows.end());
    const auto content = parse_json(read_text(name_, bench::kMostRowsBytes));
    for (const double ns : content.at("distances")) {
      outcome.distances.push_back({ns});
    }
  }

 private:
  static std::string name_in_temporary_folder() {
    std::error_code error;
    const fs::path folder = fs::temp_directory_path(error);
    if (error) {
      const auto given = comm::environment_variable("TMPDIR");
      throw FileError(fmt::format("{} is no folder for temporary files: {}; set TMPDIR to one",
                                  given.value_or("/tmp"), error.message()));
    }
    return (folder / "ringlet-all-reduce-XXXXXX").string();
  }

  std::string name_ = name_in_temporary_folder();
};

/// Starts the processes of each number of ranks in turn.
int run_families(const AllReduceFlags& flags, const CLI::App& command) {
  const std::vector<AllReduceBlock> blocks = all_reduce_blocks(flags);  // or it throws, once
  check_outputs(flags, command, flags.ranks.front());
  const Others others = read_others(flags);
  const std::optional<bench::MachineRecord> machine = machine_of(flags);
  Outcome outcome;
  for (const int ranks : flags.ranks) {
    const RowsFile file;
    if (outcome.rows.empty()) {
      fmt::print("{}\n", time_text(flags, blocks));
      std::fflush(stdout);  // before what the processes say
    }
    const int code = start_processes(ranks);
    if (code != 0) return code;
    file.add_to(outcome);
  }
  write_outputs(flags, outcome, others, machine);
  require_right(outcome.rows);
  return exit_code(flags, outcome.rows);
}

/// For --with alone: shows only what was measured before.
int show_others(const AllReduceFlags& flags, const CLI::App& command) {
  if (flags.with.empty()) throw UsageError("--no-measure leaves nothing to show without --with");
  if (!flags.json.empty() || !flags.csv.empty() || !flags.trace.empty()) {
    throw UsageError("--no-measure writes nothing but --report");
  }
  check_outputs(flags, command, 1);
  const Others others = read_others(flags);
  write_outputs(flags, {}, others, {});
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
                    : fmt::format("the same of {}: {}", collective.name, collective.summary));
  add_all_reduce_flags(*command, *flags);
  command->footer(footer_of(collective));
  command->callback([flags, command, &action] {
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
