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
//   for_each_pack(name, n, f)    the same in packs: f.template apply<kPack>(pack) where
//                                f.takes_packs(), and f.template apply<1>(i) for what is left
//   run_blocks(name, blocks, p)  p.phase(k, place, shared) for every k in [0, P::kPhases) and every
//                                thread of every block; the P::kThreads threads of a block finish
//                                a phase before one of them begins the next
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

#include "kernels/host_device.h"

namespace ringlet::grid {

/// One thread of a grid of blocks.
struct Place {
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

/// The program of blocks whose threads each bring a share(place). They are added in a tree, and
/// thread 0 hands the sum to finish(place, sum).
template <class Derived, class T>
struct BlockSum {
  static constexpr int kThreads = 256;
  static constexpr int kSteps = tree_steps(kThreads);
  static constexpr int kPhases = kSteps + 2;
  struct Shared {
    T sums[kThreads];
  };

  RINGLET_HOST_DEVICE void phase(int k, const Place& place, Shared& shared) const {
    const Derived& derived = static_cast<const Derived&>(*this);
    if (k == 0) {
      shared.sums[place.thread] = derived.share(place);
    } else if (k <= kSteps) {
      tree_step(shared.sums, kThreads, k - 1, place.thread, Sum{});
    } else if (place.thread == 0) {
      derived.finish(place, shared.sums[0]);
    }
  }
};

}  // namespace ringlet::grid
