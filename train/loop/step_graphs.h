// StepGraphs: whole training steps captured as CUDA graphs, so that a step of dozens of small
// kernels costs the host one launch.
//
// What changes from step to step is read from device memory (StepInputs, BatchPosition), so a graph
// is good for every step with as many samples. The first of them runs eagerly: it makes the
// libraries' plans and lets workspaces grow, which a capture could not hold.
//
// Where the device refuses a capture, because a library has called what CUDA forbids meanwhile, the
// step and all that follow run eagerly. Not where a transport's calls were captured with it: other
// ranks wait for these, and its library is of no more use.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "base/error.h"
#include "comm/core/captures.h"
#include "kernels/capture.h"
#include "kernels/stream.h"

namespace ringlet::train {

class StepGraphs {
 public:
  /// `wanted`: false runs everything eagerly, as does a stream that cannot capture.
  /// `captures`: of the transport whose collectives a step has; null where it has none.
  StepGraphs(Stream& stream, bool wanted, comm::Captures* captures = nullptr)
      : stream_(stream), wanted_(wanted), captures_(captures) {}

  /// Whether run() may capture at all.
  bool enabled() const { return wanted_ && stream_.can_capture(); }
  /// From here on everything runs eagerly.
  void forbid() { wanted_ = false; }

  /// Runs `enqueue()` for a step of `samples` samples: calls it, or replays what an earlier call
  /// has enqueued. `repeatable()` is asked before a capture: whether all that was enqueued so far
  /// depends on nothing that only the host knows.
  /// `launched(is_new)` is called behind each launch of a graph; is_new: it was captured for that.
  /// `refused(why)`: a capture was refused. What enqueue() has taken is to be had once more: it is
  /// called again next.
  template <class Enqueue, class Repeatable, class Launched, class Refused>
  void run(std::int64_t samples, Enqueue enqueue, Repeatable repeatable, Launched launched,
           Refused refused) {
    if (!enabled()) return enqueue();
    Entry& entry = entries_[samples];
    if (!entry.graph && (entry.eager_runs < kEagerRuns || !repeatable())) {
      ++entry.eager_runs;
      return enqueue();
    }
    const bool is_new = !entry.graph;
    if (is_new) {
      try {
        const comm::CaptureScope scope(captures_);
        entry.graph = capture(stream_, enqueue);
      } catch (const DeviceError& error) {
        if (captures_ != nullptr) throw;
        forbid();
        refused(error.what());
        return enqueue();
      }
    }
    stream_.launch(*entry.graph);
    launched(is_new);
  }

 private:
  static constexpr int kEagerRuns = 1;
  struct Entry {
    int eager_runs = 0;
    std::unique_ptr<Graph> graph;
  };
  Stream& stream_;
  bool wanted_;
  comm::Captures* captures_;
  std::map<std::int64_t, Entry> entries_;  // by samples: full batches and the short last one
};

}  // namespace ringlet::train
