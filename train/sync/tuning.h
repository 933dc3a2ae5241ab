// Tuning: the fastest all-reduce strategy of each size on this machine, and how long each strategy
// took. `ringlet tune` measures them, `--sync auto` reads the strategies, and a run predicts its
// synchronisation from the times.
//
//   {"ranges": [{"device": "cpu", "transport": "local", "ranks": 2, "from_bytes": 0,
//                "strategy": "one-shot"}, ...],
//    "times": [{"device": "cpu", "transport": "local", "ranks": 2, "strategy": "ring",
//               "bytes": 4096, "seconds": 2e-6}, ...]}
//
// A file without "times" is an older one. The transport of several machines is named by its path
// (Transport::path()): "gloo between 2 machines, shm inside". Each machine has a file of its own,
// and process 0's counts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "comm/all_reduce/strategy_table.h"
#include "comm/core/group.h"
#include "train/recipe/options.h"

namespace ringlet::train {

/// ringlet/NAME.HOST.json in $XDG_CACHE_HOME or ~/.cache; "" where there is neither.
std::filesystem::path cache_file(const std::string& name);
/// ringlet/all-reduce.HOST.json in $XDG_CACHE_HOME or ~/.cache; "" where there is neither.
std::filesystem::path tuning_file();

/// The name in the file: the transport's path where the ranks are on several machines, else
/// `transport`, "local", "shm", "gloo", "mpi" or "nccl".
std::string tuned_transport(const comm::Transport& ranks, const std::string& transport);

/// The table that was measured for ranks on this kind of device over this transport; empty where
/// there is none. Throws FileError naming a file that cannot be read.
comm::StrategyTable read_tuning(const std::filesystem::path& file, DeviceKind device,
                                const std::string& transport);

/// The median time of one all-reduce.
struct MeasuredTime {
  int ranks = 2;
  std::string strategy;
  std::int64_t bytes = 0;  ///< on each rank, more than 0
  double seconds = 0;      ///< more than 0
};

/// The times that were measured with that table, in any order; empty where none were. Throws
/// FileError as read_tuning().
std::vector<MeasuredTime> read_times(const std::filesystem::path& file, DeviceKind device,
                                     const std::string& transport);

/// Replaces what the file has for this device, transport and the table's numbers of ranks by
/// `table` and `times`, and keeps the rest, unless that is of another processor. Throws FileError.
void write_tuning(const std::filesystem::path& file, DeviceKind device,
                  const std::string& transport, const comm::StrategyTable& table,
                  const std::vector<MeasuredTime>& times = {});

/// Of a table that another processor's ranks were timed for, which one file name may stand for (a
/// virtual machine that has moved, containers of one name): a line that names both. "" where it is
/// of this one, does not say, or is not there.
std::string why_foreign(const std::filesystem::path& file);

/// This machine's table where the strategy of `execution` is `auto`, which needs it; else empty, as
/// where the table is of another processor.
comm::StrategyTable tuned_table(const Execution& execution, const std::string& transport);

/// The table for all ranks of the group: that of `execution`, or, on several machines, the one that
/// process 0 finds. Collective over the processes. Throws FileError, and what Group::agree() does.
comm::StrategyTable table_of_world(comm::Group& group, const Execution& execution);

}  // namespace ringlet::train
