#include "train/sync/strategy_pick.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files/atomic_file.h"
#include "base/files/input_file.h"
#include "base/files/json_fields.h"
#include "base/files/json_text.h"
#include "base/interference.h"
#include "base/processors.h"
#include "base/switches.h"
#include "comm/all_reduce/auto.h"
#include "train/sync/transport_choice.h"
#include "train/sync/tuning.h"

namespace ringlet::train {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMostKept = 64;  // the newest
constexpr int kRule = 6;               // by which probes choose: those of another are measured anew
constexpr double kAsFar = 1.3;         // times as long a least sum may take, either way

bool probes(const comm::Communicator& world, const Execution& execution) {
  const auto is_processor = [](const DeviceId& id) { return id.kind == DeviceKind::cpu; };
  return execution.probe && !execution.deterministic && !is_switched_off(kProbes) &&
         std::ranges::all_of(execution.devices, is_processor) && world.world().machines == 1;
}

/// "0-3,8"
std::string processors_in_words() {
  const std::vector<int> allowed = allowed_processors();
  std::string words;
  for (auto at = allowed.begin(); at != allowed.end();) {
    auto last = at;
    while (last + 1 != allowed.end() && *(last + 1) == *last + 1) ++last;
    words += fmt::format("{}{}", words.empty() ? "" : ",", *at);
    if (last != at) words += fmt::format("-{}", *last);
    at = last + 1;
  }
  return words;
}

double least_seconds(const comm::ProbeResult& result) {
  double least = 0;
  for (const comm::ProbedTime& time : result.times) {
    const bool is_first = time.bytes == result.times.front().bytes;
    if (is_first && (least == 0 || time.seconds < least)) least = time.seconds;
  }
  return least;
}

/// What world's rank 0 says.
std::string from_rank_0(comm::Communicator& world, Device& device, const std::string& mine) {
  return world.gather_text(device.communication(), mine, "strategies").front();
}

bool are_as_far(double least_seconds, double other) {
  return least_seconds < kAsFar * other && other < kAsFar * least_seconds;
}

bool is_instead_of(const KeptProbe& a, const KeptProbe& b) {
  return a.transport == b.transport && a.processors == b.processors &&
         a.table.front().ranks == b.table.front().ranks &&
         are_as_far(a.least_seconds, b.least_seconds);
}

KeptProbe read_probe(const json& entry) {
  KeptProbe probe;
  int ranks = 0;
  std::string table;
  read_field(entry, "transport", probe.transport);
  read_field(entry, "processors", probe.processors);
  read_field(entry, "ranks", ranks);
  read_field(entry, "least_seconds", probe.least_seconds);
  read_field(entry, "table", table);
  probe.table = comm::parse_table(table, ranks);
  return probe;
}

json to_json(const KeptProbe& probe) {
  return {{"transport", probe.transport},
          {"processors", probe.processors},
          {"ranks", probe.table.front().ranks},
          {"least_seconds", probe.least_seconds},
          {"table", comm::format_table(probe.table)}};
}

}  // namespace

const char* name_of(PickedBy by) {
  switch (by) {
    case PickedBy::nothing:
      return "";
    case PickedBy::costs:
      return "costs";
    case PickedBy::state:
      return "state";
    case PickedBy::tuning:
      return "tune";
    case PickedBy::kept_probe:
      return "kept probe";
    case PickedBy::probe:
      return "probe";
  }
  return "";
}

StrategyPick pick_strategies(comm::Communicator& replicas, comm::Communicator& world,
                             Device& device, const Execution& execution, const fs::path& keep) {
  if (replicas.size() == 1 || execution.sync != comm::AutoAllReduce::kName) return {};
  // Rank 0 decides for all: processes may have other variables, and stages lie on other machines.
  constexpr const char* kProbed = "probe";
  const bool may = replicas.goes_by_costs() && probes(world, execution);
  if (from_rank_0(world, device, may ? kProbed : "") != kProbed) {
    if (replicas.goes_by_costs()) return {PickedBy::costs, replicas.table()};
    return {execution.table_of_state ? PickedBy::state : PickedBy::tuning,
            comm::ranges_for(replicas.table(), replicas.size())};
  }
  // A look at the least sum tells how far the ranks are from each other, and so whether what is
  // kept is of such ranks.
  constexpr std::int64_t kLargest = 1 << 10;  // of the least sums, here and there
  constexpr double kAFewCalls = 6e-3;
  const bool is_first = world.rank() == 0;
  Stream& stream = device.communication();
  const InterferenceWatch watch(InterferenceWatch::Of::thread);
  const comm::ProbeResult look =
      replicas.probe(stream, {.seconds = kAFewCalls, .largest = kLargest, .only_least = true});
  KeptProbe now{tuned_transport(replicas.transport(), name_of(execution.transport)),
                processors_in_words(), least_seconds(look)};
  std::string told;
  if (is_first) {
    if (const auto kept = find_probe(read_probes(keep), now, replicas.size())) {
      told = comm::format_table(kept->table);
    }
  }
  told = from_rank_0(world, device, told);
  StrategyPick pick{PickedBy::kept_probe, {}, look.seconds};
  if (told.empty()) {
    const comm::ProbeResult result = replicas.probe(stream);
    pick.by = PickedBy::probe;
    pick.seconds += result.seconds;
    told = from_rank_0(world, device, comm::format_table(result.table));
    now.table = result.table;
    // The host of a virtual machine may have moved its processors since the look.
    const bool disturbed =
        look.disturbed || result.disturbed || !are_as_far(now.least_seconds, least_seconds(result));
    if (is_first && !keep.empty() && !disturbed && in_words(watch.seen(), "").empty()) {
      try {
        keep_probe(keep, now);
      } catch (const FileError&) {  // it is measured anew next time
      }
    }
  }
  pick.table = comm::parse_table(told, replicas.size());
  replicas.use(pick.table);
  return pick;
}

std::string in_words(const StrategyPick& pick) {
  if (pick.by == PickedBy::nothing || pick.by == PickedBy::costs) return {};
  std::string ranges;
  for (const comm::StrategyRange& range : pick.table) {
    if (range.from_bytes > 0) {
      const std::string_view unit = range.from_bytes % (1 << 20) == 0   ? "MiB"
                                    : range.from_bytes % (1 << 10) == 0 ? "KiB"
                                                                        : "bytes";
      const int shift = unit == "MiB" ? 20 : unit == "KiB" ? 10 : 0;
      ranges += fmt::format(", from {} {} ", range.from_bytes >> shift, unit);
    }
    ranges += range.strategy;
  }
  switch (pick.by) {
    case PickedBy::state:
      return "auto as before: " + ranges;
    case PickedBy::tuning:
      return "auto by ringlet tune: " + ranges;
    case PickedBy::kept_probe:
      return "auto by an earlier probe: " + ranges;
    default:
      return fmt::format("auto by a probe of {:.0f} ms: {}", 1e3 * pick.seconds, ranges);
  }
}

fs::path probes_file() { return cache_file("probes"); }

std::vector<KeptProbe> read_probes(const fs::path& file) {
  constexpr std::uintmax_t kMostBytes = 1 << 20;
  std::error_code error;
  if (file.empty() || !fs::exists(file, error)) return {};
  std::vector<KeptProbe> kept;
  try {
    const json content = json_or_discarded(read_text(file, kMostBytes));
    if (!content.is_object() || content.value("rule", 0) != kRule) return {};
    for (const json& entry : content.at("probes")) kept.push_back(read_probe(entry));
  } catch (const std::exception&) {  // not what a run writes: measured anew, and written anew
    return {};
  }
  return kept;
}

std::optional<KeptProbe> find_probe(const std::vector<KeptProbe>& kept, const KeptProbe& now,
                                    int ranks) {
  KeptProbe wanted = now;
  wanted.table = {{ranks, 0, ""}};
  const auto found = std::ranges::find_if(
      kept, [&](const KeptProbe& probe) { return is_instead_of(probe, wanted); });
  return found == kept.end() ? std::nullopt : std::optional(*found);
}

void keep_probe(const fs::path& file, const KeptProbe& probe) {
  std::vector<KeptProbe> kept = read_probes(file);
  std::erase_if(kept, [&](const KeptProbe& other) { return is_instead_of(other, probe); });
  kept.push_back(probe);
  if (kept.size() > kMostKept) kept.erase(kept.begin());
  json list = json::array();
  for (const KeptProbe& entry : kept) list.push_back(to_json(entry));
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  write_file_atomically(file, json{{"rule", kRule}, {"probes", list}}.dump(1) + "\n");
}

}  // namespace ringlet::train
