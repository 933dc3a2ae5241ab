#include "bench/all_reduce/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/hash.h"
#include "bench/all_reduce/pinning.h"
#include "bench/all_reduce/rank_barrier.h"
#include "bench/all_reduce/read_all.h"
#include "bench/all_reduce/sizes.h"
#include "bench/all_reduce/test_pattern.h"
#include "comm/all_reduce/auto.h"
#include "comm/all_reduce/two_level.h"
#include "comm/core/part_transport.h"
#include "kernels/host_copy.h"
#include "kernels/memory.h"
#include "train/sync/transport_choice.h"
#include "train/sync/tuning.h"
#include "train/trainer.h"

namespace ringlet::bench {

namespace {

/// What a rank sends to the others about its calls, as bytes: so it holds numbers only.
struct RankResult {
  struct Head {
    std::int64_t wrong = 0;
    std::uint64_t hash = 0;
    std::uint64_t stop_wished = 0;
  };
  Head head{};
  std::vector<double> seconds;  ///< of each timed call

  std::string pack() const {
    std::string text(sizeof head + seconds.size() * sizeof(double), '\0');
    std::memcpy(text.data(), &head, sizeof head);
    std::memcpy(text.data() + sizeof head, seconds.data(), seconds.size() * sizeof(double));
    return text;
  }
  static RankResult unpack(const std::string& text) {
    RankResult result;
    std::memcpy(&result.head, text.data(), sizeof result.head);
    result.seconds.resize((text.size() - sizeof result.head) / sizeof(double));
    std::memcpy(result.seconds.data(), text.data() + sizeof result.head,
                text.size() - sizeof result.head);
    return result;
  }
};

/// The buffers of one size on one rank: input, result, and what checks them.
class RankBuffers {
 public:
  RankBuffers(const AllReduceBenchOptions& options, Device& device, const comm::Communicator& world,
              const comm::Transport& ranks, std::int64_t bytes)
      : stream_(device.communication()),
        pattern_(options.type, options.op, ranks.rank(), ranks.size()),
        result_(world.allocator(device), {bytes / size_of(options.type)}, options.type) {
    if (!options.in_place) input_ = Tensor(device, result_.shape(), options.type);
    if (!stream_.in_order_with_host()) on_host_.resize(static_cast<std::size_t>(bytes));
  }

  View result() const { return result_; }
  std::int64_t bytes() const { return result_.view().bytes(); }

  void write_input(std::int64_t iteration) {
    const View input = out_of_place() ? input_.view() : result_.view();
    void* const data = on_host_.empty() ? input.data() : on_host_.data();
    pattern_.write_input(iteration, data, bytes());
    if (!on_host_.empty()) copy_from_host(stream_, data, input);
    stream_.synchronize();
  }

  /// Out of place: puts the input where the result will be.
  void copy_input() {
    if (!out_of_place()) return;
    if (on_host_.empty()) {
      std::memcpy(result_.view().data(), input_.view().data(), static_cast<std::size_t>(bytes()));
    } else {
      copy_from_host(stream_, on_host_.data(), result_);
    }
  }

  /// Reads the whole result, where the host can.
  void read_result() {
    if (on_host_.empty()) kept_ = read_all(result_.view().data(), bytes());
  }

  std::int64_t count_wrong(std::int64_t iteration) {
    return pattern_.count_wrong(iteration, result_on_host(), bytes());
  }
  std::uint64_t hash() { return hash_bytes(result_on_host(), static_cast<std::size_t>(bytes())); }

 private:
  bool out_of_place() const { return !input_.view().absent(); }
  const void* result_on_host() {
    if (on_host_.empty()) return result_.view().data();
    copy_to_host(stream_, result_, on_host_.data());
    stream_.synchronize();
    return on_host_.data();
  }

  Stream& stream_;
  TestPattern pattern_;
  Tensor result_;
  Tensor input_;                     // out of place only
  std::vector<std::byte> on_host_;   // of memory that the host cannot reach
  volatile std::uint64_t kept_ = 0;  // so that the result is read
};

/// What `auto` picks from, where it is measured.
comm::StrategyTable table_for(comm::Group& group, const AllReduceBenchOptions& options) {
  train::Execution execution = options.execution;
  execution.sync = comm::AutoAllReduce::kName;
  const auto& measured = options.strategies;
  const bool needed = std::find(measured.begin(), measured.end(), execution.sync) != measured.end();
  if (!needed) return {};
  return train::table_of_world(group, train::decided(execution));
}

comm::CommunicatorOptions options_of(const train::Execution& execution,
                                     const std::string& strategy) {
  return {strategy, execution.comm_timeout, execution.strategies, execution.table};
}

/// One strategy on one size, seen from one rank.
class StrategyBench {
 public:
  /// `world`: of all ranks, which meet and compare there. `transport`: of those that reduce.
  StrategyBench(const AllReduceBenchOptions& options, Device& device, comm::Communicator& world,
                comm::Transport& transport, const std::string& strategy, RankBarrier& barrier,
                RankBuffers& buffers)
      : options_(options),
        stream_(device.communication()),
        world_(world),
        communicator_(transport, options_of(options.execution, strategy)),
        barrier_(barrier),
        buffers_(buffers),
        name_(fmt::format("{} {}", communicator_.strategy(), size_text(buffers.bytes()))) {}

  /// The same on every rank.
  std::vector<RankResult> run() {
    const double seconds = warm_up();
    const int iterations = options_.iterations > 0 ? options_.iterations : agree_on(seconds);
    RankResult mine;
    for (int i = 0; i < iterations; ++i) {
      mine.seconds.push_back(call());
      const bool last = i == iterations - 1;
      if (i == 0 || last || buffers_.bytes() <= kComparedAlways) mine.head.wrong += wrong_now();
      if (last) mine.head.hash = buffers_.hash();
    }
    mine.head.stop_wished = options_.stop_requested && options_.stop_requested() ? 1 : 0;
    std::vector<RankResult> all;
    for (const std::string& text : world_.gather_text(stream_, mine.pack(), "results")) {
      all.push_back(RankResult::unpack(text));
    }
    return all;
  }

  /// Makes a few calls more, whose spans go to the trace.
  void run_traced(train::TraceWriter& trace, Device& device) {
    for (int i = 0; i < kTracedCalls; ++i) {
      prepare();
      const train::TraceWriter::Recording recording(&trace, world_.rank(), device);
      finish();
    }
  }

 private:
  void prepare() {
    buffers_.write_input(++iteration_);
    barrier_.meet(world_, stream_);
  }
  void finish() {
    buffers_.copy_input();
    communicator_.all_reduce(stream_, buffers_.result(), name_, options_.op);
    stream_.synchronize();
    communicator_.require_alive();
    buffers_.read_result();
  }
  /// Seconds of one call on this rank.
  double call() {
    prepare();
    const std::int64_t begin = now_ns();
    finish();
    return 1e-9 * static_cast<double>(now_ns() - begin);
  }
  std::int64_t wrong_now() { return options_.check ? buffers_.count_wrong(iteration_) : 0; }

  /// Seconds that a call takes with all that belongs to it, taken from the fastest one.
  double warm_up() {
    double fastest = INFINITY;
    for (int i = 0; i < options_.warm_up; ++i) {
      const std::int64_t begin = now_ns();
      call();
      if (buffers_.bytes() <= kComparedAlways) wrong_now();
      fastest = std::min(fastest, 1e-9 * static_cast<double>(now_ns() - begin));
    }
    return fastest;
  }

  int agree_on(double seconds) {
    double slowest = 0;
    for (const std::string& text :
         world_.gather_text(stream_, RankResult{{}, {seconds}}.pack(), "duration")) {
      slowest = std::max(slowest, RankResult::unpack(text).seconds.front());
    }
    const double wanted = kSecondsOfASize / std::max(slowest, 1e-9);
    return static_cast<int>(std::clamp<double>(wanted, kFewestIterations, kMostIterations));
  }

  const AllReduceBenchOptions& options_;
  Stream& stream_;
  comm::Communicator& world_;
  comm::Communicator communicator_;
  RankBarrier& barrier_;
  RankBuffers& buffers_;
  std::string name_;
  std::int64_t iteration_ = 0;
};

Measurement measurement_of(const AllReduceBenchOptions& options, const std::string& strategy,
                           const RankBuffers& buffers, const std::vector<RankResult>& ranks) {
  Measurement row;
  row.strategy = strategy;
  row.ranks = static_cast<int>(ranks.size());
  row.bytes = buffers.bytes();
  row.count = buffers.result().count();
  row.type = name_of(options.type);
  row.op = name_of(options.op);
  row.in_place = options.in_place;
  row.checked = options.check;
  std::vector<double> slowest(ranks.front().seconds.size());
  for (const RankResult& rank : ranks) {
    for (std::size_t i = 0; i < slowest.size(); ++i) {
      slowest[i] = std::max(slowest[i], rank.seconds[i]);
    }
    row.wrong += rank.head.wrong;
    row.hashes.push_back(fmt::format("{:016x}", rank.head.hash));
  }
  set_times(row, slowest);
  return row;
}

}  // namespace

bool pins_ranks(const AllReduceBenchOptions& options, int ranks) {
  // Gloo and MPI have threads of their own, which a rank that cannot move keeps waiting for whole
  // time slices.
  return options.pin && options.execution.transport != train::TransportChoice::gloo &&
         options.execution.transport != train::TransportChoice::mpi &&
         options.execution.devices.front().kind == DeviceKind::cpu && can_pin(ranks);
}

namespace {

/// Ranks that reduce together: all, or, on several machines, those of one, or one of each.
struct Level {
  std::string name;
  std::vector<int> ranks;                       ///< that do so with rank 0, in their order
  std::unique_ptr<comm::PartTransport> part{};  ///< of this rank; null for all ranks

  comm::Transport& of(comm::Transport& all) const { return part ? *part : all; }
  /// What tells how strategies go on parts of the world is `ring` and its like: messages alone.
  bool measures(const comm::Strategies& strategies, const std::string& name_of_strategy) const {
    if (!part) return true;
    const comm::Strategy* strategy = strategies.find(name_of_strategy);
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

/// The results of the level's ranks.
std::vector<RankResult> results_of(const Level& level, const std::vector<RankResult>& all) {
  std::vector<RankResult> results;
  for (const int rank : level.ranks) results.push_back(all[static_cast<std::size_t>(rank)]);
  return results;
}

}  // namespace

std::vector<Measurement> measure_all_reduce(comm::Group& group, AllReduceBenchOptions options,
                                            const MeasurementListener& listener,
                                            train::TraceWriter* trace) {
  options.execution.table = table_for(group, options);  // once: the ranks must not read two
  const std::string transport = train::tuned_transport(group.transport(group.first_rank()),
                                                       name_of(options.execution.transport));
  RankBarrier barrier(group);
  const bool pinned = pins_ranks(options, group.size());
  std::atomic<bool> stopped{false};
  std::vector<Measurement> measurements;
  const auto body = [&](Device& device, comm::Communicator& world) {
    if (pinned) (void)pin_rank(world.rank());  // if it fails, the rank is where it was
    const auto measure = [&](const Level& level, RankBuffers& buffers,
                             const std::string& strategy) {
      StrategyBench bench(options, device, world, level.of(world.transport()), strategy, barrier,
                          buffers);
      const std::vector<RankResult> results = bench.run();
      const bool stops = std::any_of(results.begin(), results.end(), [](const RankResult& rank) {
        return rank.head.stop_wished != 0;
      });
      if (stops) stopped = true;
      if (trace != nullptr) bench.run_traced(*trace, device);
      if (world.world().local_rank != 0) return !stops;
      Measurement row = measurement_of(options, strategy, buffers, results_of(level, results));
      row.machines = group.machines();
      row.level = level.name;
      row.transport = transport;
      row.pinned = pinned;
      row.ranks_as = options.ranks_as();
      measurements.push_back(row);
      if (world.rank() == 0) listener(row);
      return !stops;
    };
    for (const Level& level : levels_of(world.transport())) {
      for (const std::int64_t bytes : options.sizes) {
        RankBuffers buffers(options, device, world, level.of(world.transport()), bytes);
        for (const std::string& strategy : options.strategies) {
          const bool measures = level.measures(options.execution.strategies, strategy);
          if (measures && !measure(level, buffers, strategy)) return;
        }
      }
    }
  };
  train::run_replicas(group, options.execution, body);
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
