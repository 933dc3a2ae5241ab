// StepGraphs: whole training steps captured as CUDA graphs, so that a step of dozens of small
// kernels costs the host one launch.
//
// What changes from step to step is read from device memory (StepInputs, BatchPosition), so a graph
// is good for every step with as many samples. The first of them runs eagerly: it makes the
// libraries' plans and lets workspaces grow, which a capture could not hold.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "kernels/stream.h"

namespace ringlet::train {

class StepGraphs {
 public:
  /// `wanted`: false runs everything eagerly, as does a stream that cannot capture.
  StepGraphs(Stream& stream, bool wanted) : stream_(stream), wanted_(wanted) {}

  /// Whether run() may capture at all.
  bool enabled() const { return wanted_ && stream_.can_capture(); }

  /// Runs `enqueue()` for a step of `samples` samples: calls it, or replays what an earlier call
  /// has enqueued. `repeatable()` is asked before a capture: whether all that was enqueued so far
  /// depends on nothing that only the host knows.
  template <class Enqueue, class Repeatable>
  void run(std::int64_t samples, Enqueue enqueue, Repeatable repeatable) {
    if (!enabled()) return enqueue();
    Entry& entry = entries_[samples];
    if (!entry.graph && (entry.eager_runs < kEagerRuns || !repeatable())) {
      ++entry.eager_runs;
      return enqueue();
    }
    if (!entry.graph) entry.graph = capture(enqueue);
    stream_.launch(*entry.graph);
  }

 private:
  template <class Enqueue>
  std::unique_ptr<Graph> capture(Enqueue& enqueue) {
    stream_.begin_capture();
    try {
      enqueue();
    } catch (...) {
      end_broken_capture();
      throw;
    }
    return stream_.end_capture();
  }
  /// A stream that is being captured can neither be waited for nor have its memory freed.
  void end_broken_capture() noexcept {
    try {
      stream_.end_capture();
    } catch (...) {  // says what is known: the capture is worth nothing
    }
  }

  static constexpr int kEagerRuns = 1;
  struct Entry {
    int eager_runs = 0;
    std::unique_ptr<Graph> graph;
  };
  Stream& stream_;
  bool wanted_;
  std::map<std::int64_t, Entry> entries_;  // by samples: full batches and the short last one
};

}  // namespace ringlet::train
