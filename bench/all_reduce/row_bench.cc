#include "bench/all_reduce/row_bench.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/stopwatch.h"
#include "bench/all_reduce/sizes.h"

namespace ringlet::bench {

std::string RankResult::pack() const {
  static_assert(std::is_trivially_copyable_v<Head>);
  std::string text(sizeof head + seconds.size() * sizeof(double), '\0');
  std::memcpy(text.data(), &head, sizeof head);
  std::memcpy(text.data() + sizeof head, seconds.data(), seconds.size() * sizeof(double));
  return text;
}

RankResult RankResult::unpack(const std::string& text) {
  RankResult result;
  std::memcpy(&result.head, text.data(), sizeof result.head);
  result.seconds.resize((text.size() - sizeof result.head) / sizeof(double));
  std::memcpy(result.seconds.data(), text.data() + sizeof result.head,
              text.size() - sizeof result.head);
  return result;
}

namespace {

/// Of a collective with one algorithm the strategy is for none of its calls.
comm::CommunicatorOptions options_of(const AllReduceBenchOptions& options,
                                     const std::string& strategy) {
  comm::CommunicatorOptions made{.timeout_seconds = options.execution.comm_timeout,
                                 .strategies = options.execution.strategies,
                                 .table = options.execution.table};
  if (options.collective().id == CollectiveId::all_reduce) made.strategy = strategy;
  return made;
}

/// Whether ranks, and threads of their transport, outnumber this machine's processors.
bool take_turns(const AllReduceBenchOptions& options, const comm::World& world, int processors) {
  const bool has_threads = options.execution.transport == train::TransportChoice::gloo ||
                           options.execution.transport == train::TransportChoice::mpi;
  return world.machine_size * (has_threads ? 2 : 1) > processors;
}

}  // namespace

/// Calls over one communicator.
class RowBench::Calls {
 public:
  explicit Calls(RowBench& row)
      : row_(row),
        size_(row.size_),
        stream_(size_.device.communication()),
        communicator_(size_.transport, options_of(size_.options, row.strategy_)),
        name_(fmt::format("{} {}", called(), size_text(size_.buffers.bytes()))),
        call_(size_.buffers.work().call) {
    call_.name = name_;
  }

  void prepare() {
    size_.buffers.write_input(++row_.iteration_);
    const int processor = sched_getcpu();
    if (processor_ >= 0 && processor != processor_) ++row_.mine_.head.moves;
    processor_ = processor;
    size_.barrier.meet(size_.world, stream_);
  }
  void finish() {
    size_.buffers.copy_input();
    run(call_, communicator_, stream_, size_.buffers.input(), size_.buffers.result());
    stream_.synchronize();
    communicator_.require_alive();
    size_.buffers.read_result();
  }
  /// Seconds of one call on this rank.
  double call() {
    prepare();
    const std::int64_t begin = now_ns();
    finish();
    return 1e-9 * static_cast<double>(now_ns() - begin);
  }
  std::int64_t wrong_now() {
    return size_.options.check ? size_.buffers.count_wrong(row_.iteration_) : 0;
  }

 private:
  const char* called() const {
    const Collective& collective = size_.options.collective();
    return collective.id == CollectiveId::all_reduce ? communicator_.strategy() : collective.name;
  }

  RowBench& row_;
  SizeBench& size_;
  Stream& stream_;
  comm::Communicator communicator_;
  std::string name_;
  CollectiveCall call_;
  int processor_ = -1;
};

RowBench::RowBench(const SizeBench& size, std::string strategy)
    : size_(size), strategy_(std::move(strategy)) {}

void RowBench::begin() {
  mine_ = {};
  calls_of_rounds_.clear();
  round_ = 0;
  quickest_product_ = INFINITY;
  slowest_product_ = 0;
}

bool RowBench::run_round() {
  if (round_ > 0 && round_ == calls_of_rounds_.size()) return false;
  Calls calls(*this);
  const Stopwatch watch;
  if (round_ == 0) {
    warm_up(calls);
  } else {
    for (int i = 0; i < untimed_calls(size_.options); ++i) calls.call();
  }
  const CorePace pace = core_pace();
  const bool first_of_machine = size_.world.world().machine_rank == 0;
  const InterferenceWatch interference(first_of_machine ? InterferenceWatch::Of::thread_and_machine
                                                        : InterferenceWatch::Of::thread);
  const auto before = mine_.seconds.size();
  const std::size_t end = before + static_cast<std::size_t>(calls_of_rounds_[round_]);
  while (mine_.seconds.size() < end) {
    mine_.seconds.push_back(calls.call());
    const bool first = mine_.seconds.size() == 1;
    const bool last = mine_.seconds.size() == end && round_ + 1 == calls_of_rounds_.size();
    if (first || last || size_.buffers.bytes() <= kComparedAlways) {
      mine_.head.wrong += calls.wrong_now();
    }
    if (last) mine_.head.hash = size_.buffers.hash();
  }
  mine_.head.interference += interference.seen();
  note(pace, core_pace());
  mine_.head.seconds += watch.seconds();
  ++round_;
  return true;
}

void RowBench::note(const CorePace& before, const CorePace& after) {
  const double product = std::min(before.product, after.product);
  quickest_product_ = std::min(quickest_product_, product);
  slowest_product_ = std::max(slowest_product_, product);
  mine_.head.clock = slowest_product_ / quickest_product_;
  if (size_.device.id().kind != DeviceKind::cpu) return;  // whose calls wait for no core
  mine_.head.core.take(before);
  mine_.head.core.take(after);
}

/// Chooses how many calls to time, where nobody said it: by the quickest with all that belongs to
/// it.
void RowBench::warm_up(Calls& calls) {
  double fastest = INFINITY;
  for (int i = 0; i < size_.options.warm_up; ++i) {
    const Stopwatch watch;
    calls.call();
    if (size_.buffers.bytes() <= kComparedAlways) calls.wrong_now();
    fastest = std::min(fastest, watch.seconds());
  }
  mine_.head.moves = 0;  // of the rounds
  const int chosen = size_.options.iterations > 0 ? size_.options.iterations : agree_on(fastest);
  const int rounds = rounds_of(chosen);
  for (int round = 0; round < rounds; ++round) {
    calls_of_rounds_.push_back(calls_of_round(chosen, rounds, round));
  }
}

int RowBench::agree_on(double seconds) {
  double slowest = 0;
  for (const std::string& text : size_.world.gather_text(
           size_.device.communication(), RankResult{{}, {seconds}}.pack(), "duration")) {
    slowest = std::max(slowest, RankResult::unpack(text).seconds.front());
  }
  const double wanted = kSecondsOfASize / std::max(slowest, 1e-9);
  return static_cast<int>(std::clamp<double>(wanted, kFewestIterations, kMostIterations));
}

std::vector<RankResult> RowBench::results() {
  mine_.head.in_turns = take_turns(size_.options, size_.world.world(), size_.processors);
  std::vector<RankResult> all;
  for (const std::string& text :
       size_.world.gather_text(size_.device.communication(), mine_.pack(), "results")) {
    all.push_back(RankResult::unpack(text));
  }
  return all;
}

bool RowBench::is_late() const {
  return size_.options.iterations == 0 && mine_.head.seconds > kMostSecondsOfASize;
}

void RowBench::hurry() {
  std::fill(calls_of_rounds_.begin() + static_cast<std::ptrdiff_t>(round_), calls_of_rounds_.end(),
            1);
}

std::vector<std::vector<double>> RowBench::by_rounds(const std::vector<double>& seconds) const {
  std::vector<std::vector<double>> rounds;
  auto begin = seconds.begin();
  for (const int calls : calls_of_rounds_) {
    rounds.emplace_back(begin, begin + calls);
    begin += calls;
  }
  return rounds;
}

void RowBench::run_traced(train::TraceWriter& trace) {
  Calls calls(*this);
  for (int i = 0; i < untimed_calls(size_.options); ++i) calls.call();
  for (int i = 0; i < kTracedCalls; ++i) {
    calls.prepare();
    const train::TraceWriter::Recording recording(&trace, size_.world.rank(), size_.device);
    calls.finish();
  }
}

}  // namespace ringlet::bench
