// Lockstep: ranks are threads that take turns, so every run of the same code is the same run. They
// live as long as the object, as those of a training do.
//
// A rank runs until it waits in an exchange or a meeting; then the next one that can go on has its
// turn. A message moves when both of its ranks have come, as if nothing were buffered; with an
// eager limit, what is no longer leaves its rank at once. Where no rank can go on, that is known
// without a clock.
//
// Every run is recorded as a Schedule with addresses.
//
// Whatever is wrong concludes the child: nothing here is undone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <semaphore>
#include <span>
#include <vector>

#include "comm/schedule/network.h"
#include "comm/schedule/schedule.h"
#include "kernels/device.h"
#include "learn/check/child.h"

namespace ringlet::learn {

struct LockstepOptions {
  std::int64_t eager_bytes = -1;  ///< -1: no message leaves before its receiver has come
};

class LockstepTransport;

class Lockstep {
 public:
  Lockstep(const comm::Network& network, const LockstepOptions& options, Board& board);
  ~Lockstep();

  int size() const { return static_cast<int>(ranks_.size()); }
  comm::Transport& transport(int rank);
  /// Runs body(rank) of each rank to its end. `data`: what each rank's body works on.
  void run(std::span<const View> data, const std::function<void(int rank)>& body);
  /// Of the last run.
  const comm::Schedule& schedule() const { return schedule_; }

  /// Who wrote an element of a rank's data last.
  struct Written {
    int exchange = 0;  ///< the rank's own, counted from 1; 0: none
    int from = comm::kNobody;
  };
  Written last_written(int rank, std::int64_t element) const;

 private:
  friend class LockstepTransport;
  friend class LockstepPeers;
  struct Rank;

  Rank& at(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }
  const Rank& at(int rank) const { return *ranks_[static_cast<std::size_t>(rank)]; }
  void live(int rank);
  void run_body(int rank);
  void wait_for_turn(int rank);
  bool give_turn(int rank);
  [[noreturn]] void stop();

  void exchange(int rank, int to, const ConstView& out, int from, const View& in,
                comm::Combine combine);
  void take_message(int rank);
  void meet(int rank);
  void check_thread(int rank);
  void check_place(int rank, const ConstView& part, const char* what);

  const comm::Network network_;
  const LockstepOptions options_;
  Board& board_;
  comm::Schedule schedule_;
  std::vector<View> data_;
  const std::function<void(int rank)>* body_ = nullptr;  // of the run; null: the threads end
  std::binary_semaphore all_have_ended_{0};
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<std::unique_ptr<LockstepTransport>> transports_;
};

/// What a learner's exception says. Call inside a catch block.
[[noreturn]] void conclude_of_exception(Board& board, int rank);

}  // namespace ringlet::learn
