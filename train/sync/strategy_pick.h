// StrategyPick: by which table a run's `auto` picks its all-reduce strategies, and how it came by
// it. The first of these that there is:
//
//   state    the run goes on, on as many replicas: it adds in the order of before
//   tune     `ringlet tune` has measured it on this machine
//   probe    measured now, in about 50 ms at most (comm/all_reduce/probe.h), or kept from a run
//            that found its ranks on the same processors and as far from each other
//   costs    what strategies state, with round figures for the transport
//
// With three replicas and more, strategies add in different orders (comm/all_reduce/all_reduce.h).
// So a probe may change the last bit from one run to the next. It is made where such bits are not
// asked for: without --exact, which has one strategy, and without --deterministic; and between
// processors of one machine, since it measures their memory.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "train/recipe/options.h"

namespace ringlet::train {

enum class PickedBy : std::uint8_t { nothing, costs, state, tuning, kept_probe, probe };
/// "costs", "state", "tune", "kept probe", "probe"; "" where nothing is picked.
const char* name_of(PickedBy by);

struct StrategyPick {
  PickedBy by = PickedBy::nothing;
  comm::StrategyTable table{};
  double seconds = 0;  ///< that a probe took
};

/// Off in the environment, of any program: no probe is made (base/switches.h).
inline constexpr const char* kProbes = "RINGLET_PROBE";

/// Lets `replicas`, which sum gradients, pick by that table: that of the world's rank 0. Collective
/// over the world. `keep`: the file of probes, which rank 0 reads and writes; "" for none. What
/// cannot be read or written there is measured, and not kept.
StrategyPick pick_strategies(comm::Communicator& replicas, comm::Communicator& world,
                             Device& device, const Execution& execution,
                             const std::filesystem::path& keep);

/// "auto by a probe of 21 ms: doubling, from 4 KiB two-shot"; "" for one that goes by costs, or
/// where nothing is picked.
std::string in_words(const StrategyPick& pick);

/// A probe that was kept.
struct KeptProbe {
  std::string transport;     ///< as of tuned_transport()
  std::string processors;    ///< that the ranks may use: "0-3,8"
  double least_seconds = 0;  ///< of the least sum: how far the ranks are from each other
  comm::StrategyTable table{};
};

/// ringlet/probes.HOST.json beside tuning_file(); "" where there is no such folder.
std::filesystem::path probes_file();
/// What the file holds; nothing where there is none, or something else.
std::vector<KeptProbe> read_probes(const std::filesystem::path& file);
/// The one for these ranks, where it is from the same processors, as far apart.
std::optional<KeptProbe> find_probe(const std::vector<KeptProbe>& kept, const KeptProbe& now,
                                    int ranks);
/// Writes them with `probe`, in place of what it is found instead of. Throws FileError.
void keep_probe(const std::filesystem::path& file, const KeptProbe& probe);

}  // namespace ringlet::train
