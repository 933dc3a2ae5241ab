#include "train/sync/tuning.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files/atomic_file.h"
#include "base/files/input_file.h"
#include "base/files/json_text.h"
#include "base/one_line.h"
#include "base/processor_name.h"
#include "comm/all_reduce/auto.h"

namespace ringlet::train {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// The folder for caches, or "".
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

[[noreturn]] void throw_foreign(const fs::path& file) {
  // Another file is one that a user named, and may be worth keeping.
  throw FileError(file.string() +
                  (file == tuning_file()
                       ? " is not what ringlet tune writes; delete it and run ringlet tune again"
                       : " is not what ringlet tune writes; name another file"));
}

/// An object with the arrays "ranges" and "times".
json read_content(const fs::path& file) {
  constexpr std::uintmax_t kMostBytes = 1 << 24;  // ours have some KiB
  json content = json_or_discarded(read_text(file, kMostBytes));
  if (!content.is_object()) throw_foreign(file);
  if (!content.contains("times")) content["times"] = json::array();
  for (const char* key : {"ranges", "times"}) {
    if (!content.contains(key) || !content[key].is_array()) throw_foreign(file);
  }
  return content;
}

bool is_for(const json& range, DeviceKind device, const std::string& transport) {
  return range.value("device", "") == kind_name(device) &&
         range.value("transport", "") == transport;
}

constexpr const char* kProcessor = "processor";

/// What the file's entries were measured on, where that is another processor than this machine's.
std::string other_processor(const json& content) {
  const auto found = content.find(kProcessor);
  const bool is_told = found != content.end() && found->is_string();
  if (!is_told || *found == processor_name()) return {};
  return *found;
}

/// The file's entries without those of this device, transport and the table's numbers of ranks.
json entries_but_for(const fs::path& file, DeviceKind device, const std::string& transport,
                     const comm::StrategyTable& table) {
  json content{{"ranges", json::array()}, {"times", json::array()}};
  std::error_code error;
  if (!fs::exists(file, error)) return content;
  const json old = read_content(file);
  if (!other_processor(old).empty()) return content;
  try {
    for (const char* key : {"ranges", "times"}) {
      for (const json& entry : old[key]) {
        const bool replaced =
            is_for(entry, device, transport) &&
            std::any_of(table.begin(), table.end(), [&entry](const auto& of_table) {
              return entry.value("ranks", 0) == of_table.ranks;
            });
        if (!replaced) content[key].push_back(entry);
      }
    }
  } catch (const json::exception&) {
    throw_foreign(file);
  }
  return content;
}

}  // namespace

fs::path cache_file(const std::string& name) {
  const fs::path cache = cache_folder();
  if (cache.empty()) return {};
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host = {"localhost"};
  return cache / "ringlet" / (name + "." + host.data() + ".json");
}

fs::path tuning_file() { return cache_file("all-reduce"); }

comm::StrategyTable read_tuning(const fs::path& file, DeviceKind device,
                                const std::string& transport) {
  std::error_code error;
  comm::StrategyTable table;
  if (file.empty() || !fs::exists(file, error)) return table;
  try {
    const json content = read_content(file);
    for (const json& range : content["ranges"]) {
      if (!is_for(range, device, transport)) continue;
      table.push_back({range.at("ranks"), range.at("from_bytes"), range.at("strategy")});
    }
  } catch (const json::exception&) {
    throw_foreign(file);
  }
  std::sort(table.begin(), table.end(), [](const auto& a, const auto& b) {
    return std::pair(a.ranks, a.from_bytes) < std::pair(b.ranks, b.from_bytes);
  });
  return table;
}

std::vector<MeasuredTime> read_times(const fs::path& file, DeviceKind device,
                                     const std::string& transport) {
  std::error_code error;
  std::vector<MeasuredTime> times;
  if (file.empty() || !fs::exists(file, error)) return times;
  try {
    const json content = read_content(file);
    for (const json& time : content["times"]) {
      if (!is_for(time, device, transport)) continue;
      times.push_back(
          {time.at("ranks"), time.at("strategy"), time.at("bytes"), time.at("seconds")});
      if (times.back().bytes <= 0 || !(times.back().seconds > 0)) throw_foreign(file);
    }
  } catch (const json::exception&) {
    throw_foreign(file);
  }
  return times;
}

void write_tuning(const fs::path& file, DeviceKind device, const std::string& transport,
                  const comm::StrategyTable& table, const std::vector<MeasuredTime>& times) {
  json content = entries_but_for(file, device, transport, table);
  content[kProcessor] = processor_name();
  json& ranges = content["ranges"];
  for (const comm::StrategyRange& range : table) {
    ranges.push_back({{"device", kind_name(device)},
                      {"transport", transport},
                      {"ranks", range.ranks},
                      {"from_bytes", range.from_bytes},
                      {"strategy", range.strategy}});
  }
  for (const MeasuredTime& time : times) {
    content["times"].push_back({{"device", kind_name(device)},
                                {"transport", transport},
                                {"ranks", time.ranks},
                                {"strategy", time.strategy},
                                {"bytes", time.bytes},
                                {"seconds", time.seconds}});
  }
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  write_file_atomically(file, content.dump(1) + "\n");
}

std::string why_foreign(const fs::path& file) {
  std::error_code error;
  if (file.empty() || !fs::exists(file, error)) return {};
  const std::string other = other_processor(read_content(file));
  if (other.empty()) return {};
  return fmt::format(
      "{} was measured on {}, and this machine has {}: it is not used; run ringlet tune again",
      on_one_line(file.string()), on_one_line(other), processor_name());
}

comm::StrategyTable tuned_table(const Execution& execution, const std::string& transport) {
  if (execution.sync != comm::AutoAllReduce::kName || !why_foreign(tuning_file()).empty())
    return {};
  return read_tuning(tuning_file(), execution.devices.front().kind, transport);
}

std::string tuned_transport(const comm::Transport& ranks, const std::string& transport) {
  return ranks.world().machines == 1 ? transport : ranks.path();
}

comm::StrategyTable table_of_world(comm::Group& group, const Execution& execution) {
  const bool decided = group.machines() == 1 || execution.table_of_state;
  if (decided || execution.sync != comm::AutoAllReduce::kName) return execution.table;
  std::optional<std::string> mine;
  if (group.process() == 0) {
    json ranges = json::array();
    const std::string transport = group.transport(group.first_rank()).path();
    for (const comm::StrategyRange& range : tuned_table(execution, transport)) {
      ranges.push_back({range.ranks, range.from_bytes, range.strategy});
    }
    mine = ranges.dump();
  }
  comm::StrategyTable table;
  for (const json& range :
       parse_json(group.agree("the table of ringlet tune", mine, execution.comm_timeout))) {
    table.push_back({range.at(0), range.at(1), range.at(2)});
  }
  return table;
}

}  // namespace ringlet::train
