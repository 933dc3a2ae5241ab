// The flags of `ringlet bench all-reduce`, and what they ask for with each number of ranks.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/all_reduce/measure.h"
#include "bench/all_reduce/sizes.h"
#include "comm/core/group.h"
#include "comm/processes/launch.h"

namespace ringlet::app {

/// The flags as the user wrote them.
struct AllReduceFlags {
  bench::SizeRange range{};
  int iterations = 0;
  int warm_up = 5;
  std::string type = "f32";
  std::string op = "sum";
  bool out_of_place = false;
  bool no_check = false;
  bool no_pin = false;
  std::vector<int> ranks{2};
  std::vector<std::string> strategies{"all"};
  std::string transport = "auto";
  std::string device = "cpu";
  std::vector<std::string> devices{};
  bool processes = false;
  double timeout = 60;  ///< seconds
  std::filesystem::path json{}, csv{}, trace{}, report{};
  std::vector<std::filesystem::path> with{};  ///< rows of other runs
  bool no_measure = false;
  bool force = false;  ///< replace those of the files above that are written
};

void add_all_reduce_flags(CLI::App& command, AllReduceFlags& flags);

/// Adds the flags of `ringlet tune`: ranks, devices and time.
void add_tuning_flags(CLI::App& command, AllReduceFlags& flags);

/// All that is measured with one number of ranks.
struct AllReduceBlock {
  int ranks = 0;
  bench::AllReduceBenchOptions options{};
  std::string left_out{};  ///< strategies that cannot run there, and why; empty: none
};

/// The blocks that the flags ask for, in order. Throws UsageError if any of them cannot be run.
std::vector<AllReduceBlock> all_reduce_blocks(const AllReduceFlags& flags);
/// The one block whose ranks are processes, of which this is the one at `place`.
AllReduceBlock all_reduce_block_at(const AllReduceFlags& flags, const comm::ProcessPlace& place);
/// The same once its group has been made, which may be on several machines: with the transport that
/// then joins them. Throws UsageError.
AllReduceBlock all_reduce_block_over(const AllReduceFlags& flags, const comm::ProcessPlace& place,
                                     comm::Group& group);

}  // namespace ringlet::app
