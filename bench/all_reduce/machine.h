// The machine that a benchmark ran on: what its figures depend on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/all_reduce/copy_bandwidth.h"
#include "bench/all_reduce/core_distance.h"

namespace ringlet::bench {

struct MachineRecord {
  std::string processor;
  int cores = 1;
  std::string instruction_set;
  std::int64_t cache_bytes = 0;         ///< of the largest cache; 0: not known
  std::vector<double> load_average{};   ///< over 1, 5 and 15 minutes, before the measurement
  std::vector<CoreDistance> distances;  ///< before and after each block
  CopyBandwidth copy{};
  std::string ringlet;  ///< version
  std::string started;  ///< "2026-11-21T20:15:00Z"
};

/// Fills all fields but the distances, which the blocks add. Copies memory for about a second.
MachineRecord survey_machine();

/// The system's load over 1, 5 and 15 minutes; empty where the system does not tell.
std::vector<double> load_average();

nlohmann::json to_json(const MachineRecord& machine);
/// "AMD EPYC, 2 cores", of what to_json() or read_machine() gave; "" where that tells nothing.
std::string machine_name(const nlohmann::json& machine);
/// The "machine" of a file of rows, without the fields that to_json() would not write (other
/// programs' files have processor and cores only). Null where there is none.
nlohmann::json read_machine(const std::filesystem::path& file);

}  // namespace ringlet::bench
