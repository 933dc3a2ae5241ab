// ringlet tune
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "comm/auto_all_reduce.h"
#include "train/all_reduce_bench/comparison.h"
#include "train/all_reduce_bench/machine.h"
#include "train/all_reduce_bench/measure.h"
#include "train/atomic_file.h"
#include "train/cli/all_reduce_bench_flags.h"
#include "train/cli/commands.h"
#include "train/cli/error_exit.h"
#include "train/cli/usage.h"
#include "train/tuning.h"

namespace ringlet::train {

namespace {

struct TuneFlags {
  AllReduceFlags bench{.range = {.begin = 256, .end = 64 << 20, .factor = 4}, .ranks = {2, 4, 8}};
  std::filesystem::path file = tuning_file();
};

/// The strategies to measure: all that can run there but `auto`, which will read the table.
AllReduceBenchOptions candidates_of(const AllReduceBlock& block) {
  AllReduceBenchOptions options = block.options;
  std::erase(options.strategies, comm::AutoAllReduce::kName);
  return options;
}

comm::StrategyTable fastest_of(const std::vector<Measurement>& rows) {
  comm::StrategyTable table;
  for (const Comparison& comparison : compare(rows)) {
    for (const Stretch& stretch : comparison.fastest) {
      const auto from = static_cast<std::int64_t>(stretch.begins_at.value_or(0));
      const std::string& strategy = comparison.series[stretch.series].rows.front().strategy;
      table.push_back({comparison.ranks, from, strategy});
    }
  }
  return table;
}

std::vector<MeasuredTime> times_of(const std::vector<Measurement>& rows) {
  std::vector<MeasuredTime> times;
  for (const Measurement& row : rows) {
    if (row.bytes > 0) times.push_back({row.ranks, row.strategy, row.bytes, 1e-6 * row.median_us});
  }
  return times;
}

void print_table(int ranks, const comm::StrategyTable& table) {
  fmt::print("{} ranks:", ranks);
  for (const comm::StrategyRange& range : table) {
    if (range.from_bytes == 0) {
      fmt::print(" {}", range.strategy);
    } else {
      fmt::print(", from {} {}", rough_size(static_cast<double>(range.from_bytes)), range.strategy);
    }
  }
  fmt::print("\n");
}

int tune(const TuneFlags& flags) {
  if (flags.file.empty()) {
    throw UsageError("there is no HOME to keep the table in; name a file with --file");
  }
  const std::vector<double> load = load_average();
  if (!load.empty() && load.front() > 0.5 * std::thread::hardware_concurrency()) {
    print_warning(fmt::format(
        "the machine is busy (load {:.1f}): what is measured now may be wrong; tune again later",
        load.front()));
  }
  const std::vector<AllReduceBlock> blocks = all_reduce_blocks(flags.bench);
  for (const AllReduceBlock& block : blocks) {
    const AllReduceBenchOptions options = candidates_of(block);
    const auto rows = measure_all_reduce(options, [](const Measurement&) {});
    for (const Measurement& row : rows) {
      if (!row.right()) {
        throw Error(
            fmt::format("{} of {} bytes over {} ranks gave a wrong result; "
                        "ringlet bench all-reduce shows more",
                        row.strategy, row.bytes, row.ranks));
      }
    }
    const comm::StrategyTable table = fastest_of(rows);
    print_table(block.ranks, table);
    write_tuning(flags.file, options.execution.devices.front().kind, transport_of(options, false),
                 table, times_of(rows));
  }
  fmt::print("kept in {}; --sync auto reads it\n", flags.file.string());
  return 0;
}

}  // namespace

void add_tune_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<TuneFlags>();
  CLI::App* command = app.add_subcommand(
      "tune", "measure the all-reduce strategies here, for --sync auto to pick from");
  command->add_option("--file", flags->file, "where the table is kept")
      ->type_name("FILE")
      ->default_str("all-reduce.HOST.json in ~/.cache/ringlet")
      ->group("Output");
  add_tuning_flags(*command, flags->bench);
  command->callback([flags, &action] { action = [flags] { return tune(*flags); }; });
}

}  // namespace ringlet::train
