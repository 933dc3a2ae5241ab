#include "learn/check/threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <system_error>
#include <thread>

#include "base/files/atomic_file.h"
#include "comm/communicator.h"
#include "comm/report/trace_events.h"
#include "comm/transport/local/local_transport.h"
#include "learn/check/lockstep.h"
#include "learn/check/measure.h"
#include "learn/check/trial.h"
#include "learn/renamed.h"

namespace ringlet::learn {

namespace {

constexpr const char* kLearners = "learners";

/// Ranks that are threads, without turns.
class Threads {
 public:
  Threads(const Chapter& chapter, const comm::Strategy& strategy, const Case& at, Board& board)
      : at_(at), board_(board), group_(at.ranks), tracers_(static_cast<std::size_t>(at.ranks)) {
    strategies_.add(renamed(strategy, kLearners));
    if (chapter.has_machines && at.ranks % 2 == 0) {
      std::vector<int> machine_of;
      for (int rank = 0; rank < at.ranks; ++rank) machine_of.push_back(rank / (at.ranks / 2));
      group_.set_machines(machine_of);
    }
  }

  void run() {
    board_.begin('C', at_);
    std::vector<Data> memory;
    std::vector<View> views;
    for (int rank = 0; rank < at_.ranks; ++rank) {
      memory.emplace_back(at_.elements, at_.dtype);
      views.push_back(memory.back().view());
      fill(views.back(), Fill::place, at_, rank);
      device_of(rank).communication().set_tracer(&tracers_[static_cast<std::size_t>(rank)]);
    }
    std::vector<std::thread> threads;
    for (int rank = 0; rank < at_.ranks; ++rank) {
      threads.emplace_back([&, rank] { live(rank, views[static_cast<std::size_t>(rank)]); });
    }
    for (std::thread& thread : threads) thread.join();
    for (int rank = 0; rank < at_.ranks; ++rank)
      device_of(rank).communication().set_tracer(nullptr);
    check(memory, views);
  }

  /// Throws FileError.
  void write_trace(const std::string& file) const {
    std::int64_t origin_ns = now_ns();
    for (const Tracer& tracer : tracers_) {
      for (const Span& span : tracer.spans()) origin_ns = std::min(origin_ns, span.begin_ns);
    }
    comm::TraceEvents events(origin_ns);
    for (std::size_t rank = 0; rank < tracers_.size(); ++rank) {
      events.add_names(static_cast<int>(rank), 1, "communication");
      for (const Span& span : tracers_[rank].spans()) {
        events.add_span(static_cast<int>(rank), 1, span);
      }
    }
    AtomicFile out(file);
    out.write(fmt::format(R"({{"displayTimeUnit":"ms","otherData":{{"process":0,"host":"",)"
                          R"("origin_ns":{},"clock":[]}},"traceEvents":[)",
                          origin_ns));
    out.write("\n");
    out.write(events.text());
    out.write("\n]}\n");
    out.commit();
  }

 private:
  void live(int rank, const View& data) {
    constexpr double kTimeoutSeconds = 60;  // the child is ended long before
    try {
      comm::Communicator communicator(
          group_.transport(rank),
          {.strategy = kLearners, .timeout_seconds = kTimeoutSeconds, .strategies = strategies_});
      communicator.all_reduce(device_of(rank).communication(), data, "all-reduce", at_.op);
    } catch (const comm::Aborted&) {  // another rank says why
    } catch (...) {
      conclude_of_exception(board_, rank);
    }
  }

  void check(const std::vector<Data>& memory, const std::vector<View>& views) {
    for (int rank = 0; rank < at_.ranks; ++rank) {
      const std::string damage = memory[static_cast<std::size_t>(rank)].damage();
      if (damage.empty()) continue;
      board_.conclude(Verdict::out_of_range, fmt::format("rank {} {}", rank, damage));
    }
    const std::string wrong = wrong_number(views, Fill::place, at_, false, nullptr);
    if (wrong.empty()) return;
    board_.conclude(Verdict::wrong_values, wrong + ", where ranks run side by side");
  }

  Case at_;
  Board& board_;
  comm::LocalGroup group_;
  comm::Strategies strategies_;
  std::vector<Tracer> tracers_;  // of each rank
};

}  // namespace

std::string check_threads(const Chapter& chapter, const comm::Strategy& strategy,
                          const std::string& trace, Board& board) {
  for (const int ranks : {2, 3, 4}) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::i32}) {
      for (const std::int64_t elements : {1, 17, 9001}) {
        for (const ReduceOp op : kReduceOps) {
          const Case at{.ranks = ranks, .elements = elements, .op = op, .dtype = dtype};
          Threads(chapter, strategy, at, board).run();
        }
      }
    }
  }
  const Case measured{.ranks = kMeasuredRanks, .elements = kMeasuredElements};
  Threads threads(chapter, strategy, measured, board);
  threads.run();
  if (trace.empty()) return {};
  try {
    let_write();
    threads.write_trace(trace);
    return {};
  } catch (const std::exception& error) {
    std::error_code none;
    std::filesystem::remove(trace, none);  // of another time
    return fmt::format("; there is no trace: {}", error.what());
  }
}

}  // namespace ringlet::learn
