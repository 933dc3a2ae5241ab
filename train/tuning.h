// Tuning: which all-reduce strategy was the fastest on this machine, as `ringlet tune` measured it
// and
// `--sync auto` reads it.
#pragma once

#include <filesystem>
#include <string>

#include "comm/all_reduce.h"
#include "comm/strategy_table.h"
#include "train/options.h"

namespace ringlet::train {

/// ringlet/all-reduce.HOST.json in $XDG_CACHE_HOME or ~/.cache; "" where there is neither.
std::filesystem::path tuning_file();

/// What was measured for ranks on this kind of device over this transport ("local", "gloo" or
/// "nccl"); empty where nothing was. Throws FileError naming a file that cannot be read.
comm::StrategyTable read_tuning(const std::filesystem::path& file, DeviceKind device,
                                const std::string& transport);

/// Puts `table` in the place of what the file has for this device, transport and these numbers of
/// ranks, and keeps the rest. Throws FileError.
void write_tuning(const std::filesystem::path& file, DeviceKind device,
                  const std::string& transport, const comm::StrategyTable& table);

/// The strategy of `execution`, with this machine's tuning where it is `auto`.
comm::MakeAllReduce tuned_strategy(const Execution& execution, const std::string& transport);

}  // namespace ringlet::train
