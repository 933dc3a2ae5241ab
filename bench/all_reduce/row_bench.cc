#include "bench/all_reduce/row_bench.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/hash.h"
#include "base/stopwatch.h"
#include "bench/all_reduce/read_all.h"
#include "bench/all_reduce/sizes.h"
#include "kernels/host_copy.h"
#include "kernels/memory.h"

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

RankBuffers::RankBuffers(const AllReduceBenchOptions& options, Device& device,
                         const comm::Communicator& world, const comm::Transport& ranks,
                         std::int64_t bytes)
    : stream_(device.communication()),
      pattern_(options.type, options.op, ranks.rank(), ranks.size()),
      result_(world.allocator(device), {bytes / size_of(options.type)}, options.type) {
  if (!options.in_place) input_ = Tensor(device, result_.shape(), options.type);
  if (!stream_.in_order_with_host()) on_host_.resize(static_cast<std::size_t>(bytes));
}

void RankBuffers::write_input(std::int64_t iteration) {
  const View input = out_of_place() ? input_.view() : result_.view();
  void* const data = on_host_.empty() ? input.data() : on_host_.data();
  pattern_.write_input(iteration, data, bytes());
  if (!on_host_.empty()) copy_from_host(stream_, data, input);
  stream_.synchronize();
}

void RankBuffers::copy_input() {
  if (!out_of_place()) return;
  if (on_host_.empty()) {
    std::memcpy(result_.view().data(), input_.view().data(), static_cast<std::size_t>(bytes()));
  } else {
    copy_from_host(stream_, on_host_.data(), result_);
  }
}

void RankBuffers::read_result() {
  if (on_host_.empty()) kept_ = read_all(result_.view().data(), bytes());
}

std::int64_t RankBuffers::count_wrong(std::int64_t iteration) {
  return pattern_.count_wrong(iteration, result_on_host(), bytes());
}

std::uint64_t RankBuffers::hash() {
  return hash_bytes(result_on_host(), static_cast<std::size_t>(bytes()));
}

const void* RankBuffers::result_on_host() {
  if (on_host_.empty()) return result_.view().data();
  copy_to_host(stream_, result_, on_host_.data());
  stream_.synchronize();
  return on_host_.data();
}

namespace {

comm::CommunicatorOptions options_of(const train::Execution& execution,
                                     const std::string& strategy) {
  return {strategy, execution.comm_timeout, execution.strategies, execution.table};
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
        communicator_(size_.transport, options_of(size_.options.execution, row.strategy_)),
        name_(fmt::format("{} {}", communicator_.strategy(), size_text(size_.buffers.bytes()))) {}

  void prepare() {
    size_.buffers.write_input(++row_.iteration_);
    const int processor = sched_getcpu();
    if (processor_ >= 0 && processor != processor_) ++row_.mine_.head.moves;
    processor_ = processor;
    size_.barrier.meet(size_.world, stream_);
  }
  void finish() {
    size_.buffers.copy_input();
    communicator_.all_reduce(stream_, size_.buffers.result(), name_, size_.options.op);
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
  RowBench& row_;
  SizeBench& size_;
  Stream& stream_;
  comm::Communicator communicator_;
  std::string name_;
  int processor_ = -1;
};

RowBench::RowBench(const SizeBench& size, std::string strategy)
    : size_(size), strategy_(std::move(strategy)) {}

void RowBench::begin() {
  mine_ = {};
  round_ = rounds_ = 0;
  quickest_clock_ = INFINITY;
  slowest_clock_ = 0;
}

bool RowBench::run_round() {
  if (round_ > 0 && round_ == rounds_) return false;
  Calls calls(*this);
  const Stopwatch watch;
  if (round_ == 0) {
    warm_up(calls);
  } else {
    for (int i = 0; i < untimed_calls(size_.options); ++i) calls.call();
  }
  const double clock = clock_probe();
  const bool first_of_machine = size_.world.world().machine_rank == 0;
  const InterferenceWatch interference(first_of_machine ? InterferenceWatch::Of::thread_and_machine
                                                        : InterferenceWatch::Of::thread);
  const auto before = mine_.seconds.size();
  const auto count = static_cast<std::size_t>(calls_of_round(iterations_, rounds_, round_));
  while (mine_.seconds.size() < before + count) {
    mine_.seconds.push_back(calls.call());
    const bool first = mine_.seconds.size() == 1;
    const bool last = mine_.seconds.size() == static_cast<std::size_t>(iterations_);
    if (first || last || size_.buffers.bytes() <= kComparedAlways) {
      mine_.head.wrong += calls.wrong_now();
    }
    if (last) mine_.head.hash = size_.buffers.hash();
  }
  note(interference.seen(), std::min(clock, clock_probe()));
  mine_.head.seconds += watch.seconds();
  ++round_;
  return true;
}

void RowBench::note(const Interference& seen, double clock) {
  mine_.head.interference += seen;
  quickest_clock_ = std::min(quickest_clock_, clock);
  slowest_clock_ = std::max(slowest_clock_, clock);
  mine_.head.clock = slowest_clock_ / quickest_clock_;
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
  iterations_ = size_.options.iterations > 0 ? size_.options.iterations : agree_on(fastest);
  rounds_ = rounds_of(iterations_);
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

std::vector<std::vector<double>> RowBench::by_rounds(const std::vector<double>& seconds) const {
  std::vector<std::vector<double>> rounds;
  auto begin = seconds.begin();
  for (int round = 0; round < rounds_; ++round) {
    const auto end = begin + calls_of_round(iterations_, rounds_, round);
    rounds.emplace_back(begin, end);
    begin = end;
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
