// Kernels as grids of threads. This folder has what each thread computes, as functors for host and
// device. It also has the grids that an operation launches, as templates over what launches them:
//
//   kernels/cuda/cuda_grid.cuh    on a GPU
//   tests/support/host_grid.h     on the host, thread by thread in a shuffled order
//
// So the tests on the CPU run the very code of the GPU's kernels; only the launch itself is left to
// a GPU's own tests. All of these operations wait for memory. A comment at each says how many bytes
// must be moved at least ("floor").
//
// What a Grid has, `name` being the operation's, for messages:
//
//   for_each(name, n, f)         f(i) for every i in [0, n), in any order
//   for_each_pack(name, n, f)    the same in packs: f.template apply<F::kPack>(pack) where
//                                f.takes_packs(), and f.template apply<1>(i) for what is left
//   run_blocks(name, blocks, p)  p.phase(k, index, shared) for every k in [0, P::kPhases) and every
//                                thread of every block; the P::kThreads threads of a block finish
//                                a phase before one of them begins the next
//   run_turns(name, blocks, p)   each thread has a P::State of its own, a GPU's in registers:
//                                p.begin(index, shared, state), p.start(...), p.turns(block) times
//                                p.fill(...) and p.work(turn, ...), then p.end(index, state).
//                                begin() and fill() write what is shared, start() and work() read
//                                it. The threads of a block finish one before the next begins
//   run_pipeline(name, blocks, p) the same with turns that come to shared memory ahead of their
//                                time, P::kStages of them: p.begin(index, state), p.turns(block)
//                                times p.fetch(turn, index, stage, state) and p.work(index, stage,
//                                state), then p.end(index, state). fetch() of a turn is called
//                                kStages - 1 turns before its work(), with the same stage. What it
//                                copies (copy_chunk()) is there by then. turns() >= 1
//   run_teams(name, teams, p)    run_blocks() with teams of p.team_size neighbouring blocks. When
//                                all of a team are through, one of them goes on:
//                                p.team_phase(k, index, shared) for k in [0, P::kTeamPhases). It
//                                sees what the others wrote, so a sum takes one launch
//   blocks_to_fill()             blocks that keep the whole device busy
//   workspace_of<T>(count)       scratch memory, until the operation ends
//   Adder                        adder(address, value) adds an integer so that none is lost
//
// Operations take it as Grid&&, since it may be made for one call.
//
// The calls of an operation run one after another. No result depends on the order of threads, nor
// on the number of multiprocessors: sums are trees whose form follows from the shapes alone.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "kernels/grid/divisor.h"

namespace ringlet::grid {

/// One thread of a grid of blocks.
struct ThreadIndex {
  std::int64_t block;
  std::int64_t blocks;
  int thread;
};

/// Steps of a tree over `count` values, a power of two.
constexpr int tree_steps(int count) {
  int steps = 0;
  while (count >> (steps + 1) != 0) ++steps;
  return steps;
}

/// Step `step` of a tree over values[0 .. count), for thread i of `count`: after tree_steps(count)
/// phases, each thread having taken part in each, values[0] is combine(...) of all.
template <class T, class Combine>
RINGLET_HOST_DEVICE void tree_step(T* values, int count, int step, int i, Combine combine) {
  const int half = count >> (step + 1);
  if (i < half) values[i] = combine(values[i], values[i + half]);
}

struct Sum {
  template <class T>
  RINGLET_HOST_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};

/// The program of teams that sum up. A team has kColumns sums; thread t brings share(index) to sum
/// t % kColumns. A block adds in a tree what its threads bring, and writes it to `partial`. The
/// team's last block adds these in the same way, and hands sum i of all to finish(i, sum).
template <class Derived, class T, int kColumns = 1>
struct TeamSum {
  static constexpr int kThreads = 256;
  static constexpr int kResident = 0;  // blocks that a multiprocessor is to have room for; 0: any
  static constexpr int kRows = kThreads / kColumns;  // threads that bring to the same sum
  static constexpr int kSteps = tree_steps(kRows);
  static constexpr int kPhases = kSteps + 2;
  static constexpr int kTeamPhases = kPhases;
  struct Shared {
    T sums[kThreads];
  };

  Divisor team_size;     // in blocks
  T* partial = nullptr;  // [blocks][kColumns]

  RINGLET_HOST_DEVICE void phase(int k, const ThreadIndex& index, Shared& shared) const {
    if (k == 0) {
      shared.sums[index.thread] = derived().share(index);
    } else {
      add_phase(k, index, shared);
    }
  }
  /// phase() when the threads have brought their shares.
  RINGLET_HOST_DEVICE void add_phase(int k, const ThreadIndex& index, Shared& shared) const {
    if (k <= kSteps) {
      tree_step(shared.sums, kThreads, k - 1, index.thread, Sum{});
    } else if (index.thread < kColumns) {
      partial[index.block * kColumns + index.thread] = shared.sums[index.thread];
    }
  }
  RINGLET_HOST_DEVICE void team_phase(int k, const ThreadIndex& index, Shared& shared) const {
    const std::int64_t team = team_size.quotient(index.block);
    if (k == 0) {
      const T* const of_team = partial + team * team_size.divisor() * kColumns;
      T sum{};
      RINGLET_ROLLED
      for (std::int64_t i = index.thread; i < team_size.divisor() * kColumns; i += kThreads) {
        sum = sum + of_team[i];
      }
      shared.sums[index.thread] = sum;
    } else if (k <= kSteps) {
      tree_step(shared.sums, kThreads, k - 1, index.thread, Sum{});
    } else if (index.thread < kColumns) {
      derived().finish(team * kColumns + index.thread, shared.sums[index.thread]);
    }
  }

 private:
  RINGLET_HOST_DEVICE const Derived& derived() const { return static_cast<const Derived&>(*this); }
};

}  // namespace ringlet::grid
