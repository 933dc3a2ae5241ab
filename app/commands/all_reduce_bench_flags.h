// The flags of `ringlet bench all-reduce` and its like, one for each collective, and what they ask
// for with each number of ranks.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "app/cli/flags.h"
#include "bench/all_reduce/measure.h"
#include "bench/all_reduce/sizes.h"
#include "comm/core/group.h"
#include "comm/processes/launch.h"

namespace ringlet::app {

/// How standard output has the rows.
enum class BenchFormat : std::uint8_t {
  table,
  nccl,     ///< as nccl-tests: in place and out of place (bench/all_reduce/foreign_text.h)
  osu,      ///< as OSU's micro-benchmarks, which run out of place
  osu_full  ///< with least, most and calls
};

/// The flags as the user wrote them. options.collective_id says of which command.
struct AllReduceFlags {
  bench::SizeRange range{};
  std::vector<int> ranks{2};
  std::vector<std::string> strategies{"all"};
  bool strategies_given = false;  ///< else another program's format has `auto` alone
  RawFlags run{};                 ///< device, devices, transport and time-out
  bool processes = false;
  bench::AllReduceBenchOptions options{};  ///< but for what a number of ranks decides
  bool out_of_place = false;               ///< of a collective that is in place by itself
  bool in_place = false;                   ///< of the others
  std::filesystem::path json{}, csv{}, raw{}, trace{}, report{};
  std::vector<std::filesystem::path> with{};  ///< rows of other runs
  BenchFormat format = BenchFormat::table;
  bool no_measure = false;
  double budget_seconds = 60;  ///< of all numbers of ranks together
  bool strict = false;         ///< rows that do not count are an exit code of their own
  bool force = false;          ///< replace those of the files above that are written

  /// Whether the comma-separated values go to standard output.
  bool csv_to_output() const { return csv == "-"; }
};

/// 4096, 4K, 64M, 1G; the text becomes a number.
CLI::Validator size_in_bytes();

/// Those of flags.options.collective().
void add_all_reduce_flags(CLI::App& command, AllReduceFlags& flags);

/// Adds the flags of `ringlet tune`: ranks, devices and time, and --budget and --strict.
void add_tuning_flags(CLI::App& command, AllReduceFlags& flags);

/// All that is measured with one number of ranks.
struct AllReduceBlock {
  int ranks = 0;
  bench::AllReduceBenchOptions options{};
  std::string left_out{};    ///< strategies that cannot run there, and why; empty: none
  bool both_places = false;  ///< in place as well as out of place
};

/// The blocks that the flags ask for, in order. Throws UsageError if any of them cannot be run.
std::vector<AllReduceBlock> all_reduce_blocks(const AllReduceFlags& flags);
/// The one block whose ranks are processes, of which this is the one at `position`.
AllReduceBlock all_reduce_block_at(const AllReduceFlags& flags,
                                   const comm::ProcessPosition& position);
/// The same once its group has been made, which may be on several machines: with the transport that
/// then joins them. Throws UsageError.
AllReduceBlock all_reduce_block_over(const AllReduceFlags& flags,
                                     const comm::ProcessPosition& position, comm::Group& group);

}  // namespace ringlet::app
