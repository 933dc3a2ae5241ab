#include "learn/check/threads.h"

#include <thread>

#include "comm/transport/local/local_transport.h"
#include "learn/check/lockstep.h"
#include "learn/check/trial.h"

namespace ringlet::learn {

namespace {

constexpr double kTimeoutSeconds = 5;

void run_threads(const comm::MakeAllReduce& make, const Case& at, Board& board) {
  board.begin('C', at);
  comm::LocalGroup group(at.ranks);
  std::vector<Data> memory;
  std::vector<View> views;
  for (int rank = 0; rank < at.ranks; ++rank) {
    memory.emplace_back(at.elements, at.dtype);
    views.push_back(memory.back().view());
    fill(views.back(), Fill::place, at, rank);
    group.transport(rank).set_timeout(kTimeoutSeconds);
    device_of(rank);
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < at.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const auto strategy = make(group.transport(rank));
        strategy->run(device_of(rank).communication(), views[static_cast<std::size_t>(rank)],
                      at.op);
      } catch (...) {
        conclude_of_exception(board, rank);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Data& data : memory) {
    if (!data.damage().empty()) board.conclude(Verdict::out_of_range, "a rank " + data.damage());
  }
  const std::string wrong = wrong_number(views, Fill::place, at, false, nullptr);
  if (!wrong.empty()) board.conclude(Verdict::wrong_values, wrong + " (with threads side by side)");
}

}  // namespace

void check_threads(const Chapter& /*chapter*/, const comm::MakeAllReduce& make,
                   const std::string& /*trace*/, Board& board) {
  for (const int ranks : {2, 3, 4}) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::i32}) {
      for (const std::int64_t elements : {1, 17, 9001}) {
        run_threads(make, {.ranks = ranks, .elements = elements, .dtype = dtype}, board);
      }
    }
  }
}

}  // namespace ringlet::learn
