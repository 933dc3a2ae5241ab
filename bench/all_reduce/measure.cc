#include "bench/all_reduce/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/processors.h"
#include "bench/all_reduce/pinning.h"
#include "bench/all_reduce/rank_barrier.h"
#include "bench/all_reduce/row_bench.h"
#include "bench/all_reduce/samples.h"
#include "comm/all_reduce/auto.h"
#include "comm/all_reduce/two_level.h"
#include "comm/core/part_transport.h"
#include "train/sync/strategy_pick.h"
#include "train/sync/transport_choice.h"
#include "train/sync/tuning.h"
#include "train/trainer.h"

namespace ringlet::bench {

namespace {

bool measures_auto(const AllReduceBenchOptions& options) {
  return std::ranges::find(options.strategies, comm::AutoAllReduce::kName) !=
         options.strategies.end();
}

/// As a training does, where `auto` is measured. Collective.
void pick_for_auto(AllReduceBenchOptions& options, comm::Communicator& world, Device& device) {
  train::Execution execution = options.execution;
  execution.sync = comm::AutoAllReduce::kName;
  if (!measures_auto(options)) return;
  comm::Communicator all(world.transport(), {execution.sync, execution.comm_timeout,
                                             execution.strategies, execution.table});
  options.execution.table =
      train::pick_strategies(all, world, device, execution, train::probes_file()).table;
}

/// What `auto` picks from, where it is measured.
comm::StrategyTable table_for(comm::Group& group, const AllReduceBenchOptions& options) {
  train::Execution execution = options.execution;
  execution.sync = comm::AutoAllReduce::kName;
  if (!measures_auto(options)) return {};
  return train::table_of_world(group, train::decided(execution));
}

}  // namespace

bool pins_ranks(const AllReduceBenchOptions& options, int ranks) {
  // Gloo and MPI have threads of their own, which a rank that cannot move keeps waiting for whole
  // time slices.
  return options.pin && options.execution.transport != train::TransportChoice::gloo &&
         options.execution.transport != train::TransportChoice::mpi &&
         options.execution.devices.front().kind == DeviceKind::cpu && can_pin(ranks);
}

double expected_seconds(const AllReduceBenchOptions& options, int ranks) {
  constexpr double kOfACall = 20e-6, kOfAByte = 0.5e-9;  // written, summed, read and compared
  const int processors = usable_processors();
  const int turns = (ranks + processors - 1) / processors;
  double seconds = 0;
  for (const std::int64_t bytes : options.sizes) {
    const double call = (kOfACall + kOfAByte * static_cast<double>(bytes)) * turns;
    const int calls = options.iterations > 0 ? options.iterations : kFewestIterations;
    const double counted =
        call * (options.warm_up + calls + rounds_of(calls) * untimed_calls(options));
    const double chosen =
        options.iterations > 0 ? 0 : std::min(kSecondsOfASize, kMostIterations * call);
    seconds += std::max(counted, chosen) * static_cast<double>(options.strategies.size());
  }
  return seconds;
}

namespace {

/// Ranks that call together: all, or, on several machines, those of one, or one of each.
struct Level {
  std::string name;
  std::vector<int> ranks;                       ///< that do so with rank 0, in their order
  std::unique_ptr<comm::PartTransport> part{};  ///< of this rank; null for all ranks

  comm::Transport& of(comm::Transport& all) const { return part ? *part : all; }
  /// What tells how strategies go on parts of the world is `ring` and its like: messages alone.
  bool measures(const AllReduceBenchOptions& options, const std::string& name_of_strategy) const {
    if (!part || options.collective().id != CollectiveId::all_reduce) return true;
    const comm::Strategy* strategy = options.execution.strategies.find(name_of_strategy);
    return strategy != nullptr && strategy->needs == comm::Needs::nothing &&
           name_of_strategy != comm::TwoLevelAllReduce::kName;
  }
};

/// The ranks of the part of the world that has `rank`: those with the same key_of(rank).
template <class KeyOf>
std::vector<int> ranks_like(int rank, int size, KeyOf key_of) {
  std::vector<int> ranks;
  for (int other = 0; other < size; ++other) {
    if (key_of(other) == key_of(rank)) ranks.push_back(other);
  }
  return ranks;
}

std::vector<Level> levels_of(comm::Transport& transport) {
  const int size = transport.size();
  const auto machine = [&](int rank) { return transport.machine_of(rank); };
  const auto local_rank = [&](int rank) {  // among the ranks of its machine
    const std::vector<int> near = ranks_like(rank, size, machine);
    return std::find(near.begin(), near.end(), rank) - near.begin();
  };
  std::vector<Level> levels;
  const auto add = [&](const char* name, auto key_of, const comm::CostModel& costs) {
    std::vector<int> ranks = ranks_like(0, size, key_of);
    if (ranks.size() < 2 || static_cast<int>(ranks.size()) == size) return;  // no level of its own
    levels.push_back({name, std::move(ranks),
                      std::make_unique<comm::PartTransport>(
                          transport, ranks_like(transport.rank(), size, key_of), costs)});
  };
  const auto everybody = [](int) { return 0; };
  levels.push_back({Measurement().level, ranks_like(0, size, everybody)});
  if (transport.world().machines == 1) return levels;
  add("between", local_rank, transport.typical_costs());
  add("inside", machine, transport.typical_costs_inside());
  return levels;
}

/// One level measured on one rank: all sizes and strategies. All ranks decide alike, by what all
/// have told each other.
class LevelBench {
 public:
  LevelBench(const AllReduceBenchOptions& options, Device& device, comm::Communicator& world,
             RankBarrier& barrier, int processors, const Level& level, Measurement usual)
      : options_(options),
        device_(device),
        world_(world),
        barrier_(barrier),
        processors_(processors),
        level_(level),
        usual_(std::move(usual)) {}

  /// The rows of a size, measured again for `budget_seconds` at most, which it takes from there.
  /// Throws Stopped.
  std::vector<Measurement> measure(std::int64_t bytes, double& budget_seconds,
                                   train::TraceWriter* trace) {
    comm::Transport& transport = level_.of(world_.transport());
    RankBuffers buffers(work_over(transport.size(), bytes), device_, world_, transport);
    const SizeBench size{options_, device_, world_, transport, barrier_, buffers, processors_};
    std::vector<Row> rows;
    for (const std::string& strategy : options_.strategies) {
      if (level_.measures(options_, strategy)) {
        rows.push_back({RowBench(size, strategy), {}, 0});
      }
    }
    std::vector<Row*> due;
    for (Row& row : rows) due.push_back(&row);
    for (bool first = true; !due.empty(); first = false) {
      run_rounds(due);
      for (Row* row : due) {
        const Measurement measured = finish(*row, buffers);
        if (first || is_to_keep(measured, row->measured)) row->measured = measured;
        if (!first) budget_seconds -= row->seconds;
      }
      due = to_measure_again(rows, budget_seconds);
    }
    std::vector<Measurement> measured;
    for (Row& row : rows) {
      if (trace != nullptr) row.bench.run_traced(*trace);
      measured.push_back(std::move(row.measured));
    }
    return measured;
  }

 private:
  /// Of a part of the world as many bytes as its ranks can divide; its root has the same number.
  RankBuffers::Work work_over(int ranks, std::int64_t bytes) const {
    const Collective& collective = options_.collective();
    const std::int64_t whole = size_of(options_.type) * collective.parts(ranks);
    return {.call = {collective, options_.op, options_.root % ranks},
            .type = options_.type,
            .in_place = options_.in_place,
            .bytes = bytes / whole * whole};
  }

  struct Row {
    RowBench bench;
    Measurement measured{};
    double seconds = 0;  ///< that it took last
  };

  void run_rounds(const std::vector<Row*>& rows) {
    for (Row* row : rows) row->bench.begin();
    for (bool any = true; any;) {
      any = false;
      for (Row* row : rows) {
        if (!row->bench.run_round()) continue;
        any = true;
        agree_after_round(row->bench);
      }
    }
  }

  /// What one rank sees, all do: a row that is late hurries. Throws Stopped where one was asked to
  /// stop.
  void agree_after_round(RowBench& row) {
    constexpr const char *kStop = "stop", *kLate = "late", *kGoOn = "go on";
    const bool stop = options_.stop_requested && options_.stop_requested();
    const auto seen = world_.gather_text(
        device_.communication(), stop ? kStop : (row.is_late() ? kLate : kGoOn), "wishes to stop");
    const auto any = [&](const char* word) {
      return std::find(seen.begin(), seen.end(), word) != seen.end();
    };
    if (any(kStop)) throw Stopped();
    if (any(kLate)) row.hurry();
  }

  /// Those that do not count, as far as the budget goes.
  static std::vector<Row*> to_measure_again(std::vector<Row>& rows, double budget_seconds) {
    std::vector<Row*> due;
    for (Row& row : rows) {
      if (row.measured.counts || row.seconds > budget_seconds) continue;
      budget_seconds -= row.seconds;
      due.push_back(&row);
    }
    return due;
  }

  Measurement finish(Row& row, const RankBuffers& buffers) {
    const std::vector<RankResult> all = row.bench.results();
    row.seconds = all.front().head.seconds;
    Measurement measured = usual_;
    measured.level = level_.name;
    measured.strategy = row.bench.strategy();
    measured.ranks = static_cast<int>(level_.ranks.size());
    measured.bytes = buffers.bytes();
    const Collective& collective = options_.collective();
    if (collective.has_root) measured.root = buffers.work().call.root;
    measured.count = buffers.result().count() / collective.parts(measured.ranks);
    RowSigns signs;
    auto samples = std::make_shared<Samples>();
    samples->ranks = level_.ranks;
    samples->calls_of_rounds = row.bench.calls_of_rounds();
    std::vector<double> slowest(all.front().seconds.size());
    for (const int number : level_.ranks) {
      const RankResult& rank = all[static_cast<std::size_t>(number)];
      for (std::size_t i = 0; i < slowest.size(); ++i) {
        slowest[i] = std::max(slowest[i], rank.seconds[i]);
      }
      samples->seconds.push_back(rank.seconds);
      measured.wrong += rank.head.wrong;
      if (collective.same_everywhere) {
        measured.hashes.push_back(fmt::format("{:016x}", rank.head.hash));
      }
      signs.ranks.push_back(rank.head.interference);
      signs.moves += rank.head.moves;
      signs.clock = std::max(signs.clock, rank.head.clock);
      signs.shared_cores.push_back(rank.head.core.share());
      signs.in_turns = signs.in_turns || rank.head.in_turns;
    }
    judge(measured, row.bench.by_rounds(slowest), signs);
    set_ranks(measured, samples->seconds);
    if (options_.keep_samples) measured.samples = std::move(samples);
    return measured;
  }

  const AllReduceBenchOptions& options_;
  Device& device_;
  comm::Communicator& world_;
  RankBarrier& barrier_;
  int processors_;
  const Level& level_;
  Measurement usual_;  // what all rows are alike in
};

}  // namespace

namespace {

/// The failure that is being handled, for want of memory: whose remedy is no batch's here.
[[noreturn]] void throw_no_memory() {
  const std::string why = message_of_current_exception();
  throw OutOfMemoryError(why.substr(0, why.find("; use ")) +
                         "; give a smaller --end, or fewer --ranks");
}

}  // namespace

std::vector<Measurement> measure_all_reduce(comm::Group& group, AllReduceBenchOptions options,
                                            const MeasurementListener& listener,
                                            train::TraceWriter* trace) {
  options.execution.table = table_for(group, options);  // once: the ranks must not read two
  Measurement usual;
  usual.collective = options.collective().name;
  usual.transport = train::tuned_transport(group.transport(group.first_rank()),
                                           name_of(options.execution.transport));
  usual.ranks_as = options.ranks_as();
  usual.machines = group.machines();
  usual.type = name_of(options.type);
  usual.op = options.collective().reduces ? name_of(options.op) : kNoOperation;
  usual.in_place = options.in_place;
  usual.checked = options.check;
  if (options.check && options.collective().reduces)
    require_exact(options.type, options.op, group.size());
  usual.pinned = pins_ranks(options, group.size());
  RankBarrier barrier(group);
  const int processors = usable_processors();  // before a rank is pinned
  std::atomic<bool> stopped{false};
  std::vector<Measurement> measurements;
  const auto body = [&](Device& device, comm::Communicator& world) {
    if (usual.pinned) (void)pin_rank(world.rank());  // if it fails, the rank is where it was
    AllReduceBenchOptions own = options;             // of this rank: its table
    pick_for_auto(own, world, device);
    const std::vector<Level> levels = levels_of(world.transport());
    double budget = options.budget_seconds;
    auto sizes_left = static_cast<double>(levels.size() * options.sizes.size());
    for (const Level& level : levels) {
      LevelBench bench(own, device, world, barrier, processors, level, usual);
      for (const std::int64_t bytes : options.sizes) {
        double share = budget / sizes_left--;
        budget -= share;
        std::vector<Measurement> rows;
        try {
          rows = bench.measure(bytes, share, trace);
        } catch (const Stopped&) {
          stopped = true;
          return;
        }
        budget += share;  // what is left of it
        if (world.world().local_rank != 0) continue;
        for (const Measurement& row : rows) {
          if (world.rank() == 0) listener(row);
          measurements.push_back(row);
        }
      }
    }
  };
  train::run_replicas(group, options.execution, [&](Device& device, comm::Communicator& world) {
    try {
      body(device, world);
    } catch (const OutOfMemoryError&) {
      throw_no_memory();
    } catch (const std::bad_alloc&) {
      throw_no_memory();
    }
  });
  if (stopped) throw Stopped();
  return measurements;
}

std::vector<Measurement> measure_all_reduce(AllReduceBenchOptions options,
                                            const MeasurementListener& listener) {
  options.execution = train::decided(std::move(options.execution));
  comm::LocalGroup group = train::threads_of(options.execution);
  return measure_all_reduce(group, std::move(options), listener);
}

}  // namespace ringlet::bench
