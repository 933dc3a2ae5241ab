// ringlet tune
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <thread>

#include "app/cli/before_meeting.h"
#include "app/cli/commands.h"
#include "app/cli/error_exit.h"
#include "app/cli/outputs.h"
#include "app/cli/processes.h"
#include "app/cli/signals.h"
#include "app/cli/usage.h"
#include "app/commands/all_reduce_bench_flags.h"
#include "app/commands/budget_flags.h"
#include "base/files/atomic_file.h"
#include "base/one_line.h"
#include "bench/all_reduce/comparison.h"
#include "bench/all_reduce/machine.h"
#include "bench/all_reduce/measure.h"
#include "comm/all_reduce/auto.h"
#include "comm/all_reduce/ring.h"
#include "train/sync/transport_choice.h"
#include "train/sync/tuning.h"

namespace ringlet::app {

namespace {

struct TuneFlags {
  AllReduceFlags bench{.range = {.begin = 256, .end = 64 << 20, .factor = 4}, .ranks = {2, 4, 8}};
  std::filesystem::path file = train::tuning_file();
};

/// The strategies to measure: all that can run there but `auto`, which will read the table.
bench::AllReduceBenchOptions candidates_of(const AllReduceBlock& block) {
  bench::AllReduceBenchOptions options = block.options;
  std::erase(options.strategies, comm::AutoAllReduce::kName);
  return options;
}

/// Of the rows that count. Where curves do not cross, the first size that was measured is where a
/// strategy begins.
comm::StrategyTable fastest_of(const std::vector<bench::Measurement>& rows) {
  comm::StrategyTable table;
  for (const bench::Comparison& comparison : bench::compare(rows)) {
    for (const bench::Stretch& stretch : comparison.fastest) {
      const bool is_first = &stretch == &comparison.fastest.front();
      const auto begin = stretch.begins_at.value_or(static_cast<double>(stretch.from));
      const auto from = is_first ? 0 : static_cast<std::int64_t>(begin);
      const std::string& strategy = comparison.series[stretch.series].rows.front().strategy;
      table.push_back({comparison.ranks, from, strategy});
    }
  }
  return table;
}

std::vector<train::MeasuredTime> times_of(const std::vector<bench::Measurement>& rows) {
  std::vector<train::MeasuredTime> times;
  for (const bench::Measurement& row : rows) {
    if (row.bytes > 0 && row.counts)
      times.push_back({row.ranks, row.strategy, row.bytes, 1e-6 * row.median_us});
  }
  return times;
}

void print_table(int ranks, const comm::StrategyTable& table) {
  fmt::print("{} ranks:", ranks);
  for (const comm::StrategyRange& range : table) {
    if (range.from_bytes == 0) {
      fmt::print(" {}", range.strategy);
    } else {
      fmt::print(", from {} {}", bench::rough_size(static_cast<double>(range.from_bytes)),
                 range.strategy);
    }
  }
  fmt::print("\n");
}

/// "between machines, a rank each: latency 113.2 us, 117 MB/s", of the ring's model. Where other
/// work on the machines made small data slower than large, or let hardly a row count, it says so.
std::string link_in_words(const bench::Comparison& between) {
  for (const bench::Series& series : between.series) {
    if (series.rows.front().strategy != comm::RingAllReduce::kName || !series.fit) continue;
    const comm::CostModel& model = series.fit->model;
    if (!(model.seconds_per_byte > 0)) {
      return "between machines, a rank each: large data took no longer than small; "
             "for latency and rate, tune again on quieter machines\n";
    }
    return fmt::format("between machines, a rank each: latency {:.1f} us, {:.0f} MB/s\n",
                       1e6 * model.latency_s, 1e-6 / model.seconds_per_byte);
  }
  return "between machines, a rank each: too few rows count; for latency and rate, tune again on "
         "quieter machines\n";
}

/// Fails before the measurement where its results could not be kept.
void prepare(const TuneFlags& flags) {
  if (flags.file.empty()) {
    throw UsageError("there is no HOME to keep the table in; name a file with --file");
  }
  require_name("--file", flags.file);
  train::read_times(flags.file, DeviceKind::cpu, "");  // throws now where it holds something else
  if (flags.file.has_parent_path()) require_writable_directory(flags.file.parent_path());
  require_writable_file(flags.file);
  const std::vector<double> load = bench::load_average();
  if (!load.empty() && load.front() > 0.5 * std::thread::hardware_concurrency()) {
    print_warning(fmt::format(
        "the machine is busy (load {:.1f}): it may take longer, and what other work disturbs is "
        "not kept",
        load.front()));
  }
}

/// Prints what was measured of all ranks, and keeps what counts of it. False where nothing does.
bool keep(const TuneFlags& flags, const bench::AllReduceBenchOptions& options,
          std::vector<bench::Measurement> rows) {
  for (const bench::Measurement& row : rows) {
    if (!row.right()) {
      throw Error(
          fmt::format("{} of {} bytes over {} ranks gave a wrong result; "
                      "ringlet bench all-reduce shows more",
                      row.strategy, row.bytes, row.ranks));
    }
  }
  std::erase_if(rows, [](const auto& row) { return row.level != bench::Measurement().level; });
  const comm::StrategyTable table = fastest_of(rows);
  const std::string busy = bench::not_counting(rows), shared = bench::on_shared_cores(rows);
  if (!busy.empty())
    fmt::print("{} ranks: {}, and none of these is kept\n", rows.front().ranks, busy);
  if (!shared.empty()) fmt::print("{} ranks: {}\n", rows.front().ranks, shared);
  if (table.empty()) return false;
  print_table(rows.front().ranks, table);
  train::write_tuning(flags.file, options.execution.devices.front().kind, rows.front().transport,
                      table, times_of(rows));
  return true;
}

void say_where(const TuneFlags& flags, bool kept) {
  if (kept) {
    fmt::print("kept in {}; {}\n", on_one_line(flags.file.string()),
               flags.file == train::tuning_file()
                   ? "--sync auto reads it"
                   : "--sync auto does not look there, but ringlet simulate --from reads it");
  } else {
    fmt::print("nothing is kept; tune again when the machine has less to do\n");
  }
}

void say_how_long(const TuneFlags& flags, const std::vector<AllReduceBlock>& blocks) {
  fmt::print("{}\n", time_text(flags.bench, blocks));
  std::fflush(stdout);
}

int tune(const TuneFlags& flags) {
  prepare(flags);
  note_stop_signals();
  std::vector<AllReduceBlock> blocks = all_reduce_blocks(flags.bench);
  for (AllReduceBlock& block : blocks) block.options = candidates_of(block);
  say_how_long(flags, blocks);
  bool kept = false;
  std::vector<bench::Measurement> all;
  for (const AllReduceBlock& block : blocks) {
    const auto rows = bench::measure_all_reduce(block.options, [](const bench::Measurement&) {});
    kept = keep(flags, block.options, rows) || kept;
    all.insert(all.end(), rows.begin(), rows.end());
  }
  say_where(flags, kept);
  return exit_code(flags.bench, all);
}

/// Tunes as one of the processes that a launcher has started, which may be on several machines. The
/// first keeps what was measured.
int tune_as_process(const TuneFlags& flags) {
  const auto position = checked([] { return comm::position_from_environment(); });
  if (!position) {
    refuse_beside_srun();
    throw UsageError(
        "tune --processes takes its place from torchrun, mpirun or srun, or from RANK, WORLD_SIZE, "
        "MASTER_ADDR and MASTER_PORT, and none of these is set; without it, threads are measured");
  }
  const AllReduceBlock planned =
      before_meeting(position, [&] { return all_reduce_block_at(flags.bench, *position); });
  return run_as_process(*position, planned.options.execution, [&](comm::Group& group) {
    const bool is_first = group.process() == 0;
    if (is_first) prepare(flags);
    AllReduceBlock block = all_reduce_block_over(flags.bench, *position, group);
    block.options = candidates_of(block);
    if (is_first) say_how_long(flags, {block});
    const auto rows =
        bench::measure_all_reduce(group, block.options, [](const bench::Measurement&) {});
    if (!is_first) return 0;
    if (group.machines() > 1) {
      fmt::print("{}\n", group.transport(0).hosts());
      for (const bench::Comparison& comparison : bench::compare(rows)) {
        const bool is_link = comparison.level == "between" || comparison.ranks == group.machines();
        if (is_link) fmt::print("{}", link_in_words(comparison));
      }
    }
    say_where(flags, keep(flags, block.options, rows));
    return exit_code(flags.bench, rows);
  });
}

}  // namespace

void add_tune_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<TuneFlags>();
  CLI::App* command = app.add_subcommand(
      "tune", "measure the all-reduce strategies here, so that --sync auto can pick");
  command->add_option("--file", flags->file, "where the table is kept")
      ->type_name("FILE")
      ->default_str("all-reduce.HOST.json in ~/.cache/ringlet")
      ->group("Output");
  add_tuning_flags(*command, flags->bench);
  command->callback([flags, &action] {
    action = [flags] { return flags->bench.processes ? tune_as_process(*flags) : tune(*flags); };
  });
}

}  // namespace ringlet::app
