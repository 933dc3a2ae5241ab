#include "train/tuning.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "comm/auto_all_reduce.h"
#include "train/atomic_file.h"
#include "train/input_file.h"

namespace ringlet::train {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// The home of caches, or "".
fs::path cache_folder() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody writes the environment meanwhile
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    return cache;
  }
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    return fs::path(home) / ".cache";
  }
  return {};
}

const char* kind_name(DeviceKind kind) { return kind == DeviceKind::cuda ? "cuda" : "cpu"; }

json read_ranges(const fs::path& file) {
  std::ifstream stream = open_input(file);
  const json content = json::parse(stream, nullptr, false);
  const auto ranges = content.is_object() ? content.find("ranges") : content.end();
  if (!content.is_object() || ranges == content.end() || !ranges->is_array()) {
    throw FileError(file.string() +
                    " is not what ringlet tune writes; delete it, or run ringlet tune again");
  }
  return *ranges;
}

bool is_for(const json& range, DeviceKind device, const std::string& transport) {
  return range.value("device", "") == kind_name(device) &&
         range.value("transport", "") == transport;
}

}  // namespace

fs::path tuning_file() {
  const fs::path cache = cache_folder();
  if (cache.empty()) return {};
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host = {"localhost"};
  return cache / "ringlet" / ("all-reduce." + std::string(host.data()) + ".json");
}

comm::StrategyTable read_tuning(const fs::path& file, DeviceKind device,
                                const std::string& transport) {
  std::error_code error;
  comm::StrategyTable table;
  if (file.empty() || !fs::exists(file, error)) return table;
  const auto known = comm::all_reduce_strategies();
  try {
    for (const json& range : read_ranges(file)) {
      if (!is_for(range, device, transport)) continue;
      const std::string strategy = range.at("strategy");
      if (std::find(known.begin(), known.end(), strategy) == known.end()) continue;
      table.push_back({range.at("ranks"), range.at("from_bytes"), strategy});
    }
  } catch (const json::exception&) {
    throw FileError(file.string() +
                    " is not what ringlet tune writes; delete it, or run ringlet tune again");
  }
  std::sort(table.begin(), table.end(), [](const auto& a, const auto& b) {
    return std::pair(a.ranks, a.from_bytes) < std::pair(b.ranks, b.from_bytes);
  });
  return table;
}

void write_tuning(const fs::path& file, DeviceKind device, const std::string& transport,
                  const comm::StrategyTable& table) {
  std::error_code error;
  json ranges = json::array();
  if (fs::exists(file, error)) {
    for (json& range : read_ranges(file)) {
      const bool replaced = is_for(range, device, transport) &&
                            std::any_of(table.begin(), table.end(), [&range](const auto& of_table) {
                              return range.value("ranks", 0) == of_table.ranks;
                            });
      if (!replaced) ranges.push_back(std::move(range));
    }
  }
  for (const comm::StrategyRange& range : table) {
    ranges.push_back({{"device", kind_name(device)},
                      {"transport", transport},
                      {"ranks", range.ranks},
                      {"from_bytes", range.from_bytes},
                      {"strategy", range.strategy}});
  }
  fs::create_directories(file.parent_path(), error);
  write_file_atomically(file, json{{"ranges", ranges}}.dump(1) + "\n");
}

comm::MakeAllReduce tuned_strategy(const Execution& execution, const std::string& transport) {
  if (execution.make_sync || execution.sync != comm::AutoAllReduce::kName) {
    return execution.make_sync;
  }
  const DeviceKind kind = execution.devices.front().kind;
  return [table = read_tuning(tuning_file(), kind, transport)](comm::Transport& of_rank) {
    return std::make_unique<comm::AutoAllReduce>(of_rank, table);
  };
}

}  // namespace ringlet::train
