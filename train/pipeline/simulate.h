// A pipeline against a clock: how long a step takes, who waits, what is held, and whether it ends.
//
// A message of a Move begins when both stages have come to it, and takes the seconds of its cut and
// direction. Both messages of a pair go at the same time, so a Move takes as long as its longer
// one, and keeps its stage from computing. Passes of a stage never overlap. A Sync waits for
// nobody: it is between a stage's replicas, and a later stage sums while earlier ones still
// compute. Behind it all stages agree (on the norm of the gradient, on a step that is skipped), and
// each updates. A step lasts from where all have agreed on the one before to where they agree on
// it: so it begins with the update of the one before, and a stage that has little to update goes on
// while another still does. Clocks are exact sums of what was given; there is nothing random.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/pipeline/program.h"

namespace ringlet::train {

/// Seconds, 0 or more, and bytes. An empty vector means nothing for each (scales: 1 for each).
struct PipelineTimes {
  std::vector<double> forward{};     ///< [p] of a whole micro-batch
  std::vector<double> backward{};    ///< [p]
  std::vector<double> activation{};  ///< [p - 1] from stage i to stage i + 1
  std::vector<double> gradient{};    ///< [p - 1] from stage i + 1 to stage i
  std::vector<double> sync{};        ///< [p] up to where all stages agree
  std::vector<double> update{};      ///< [p] and from there to the next step
  /// [p][m] passes of each micro-batch, where they are known one by one: in place of `forward` and
  /// `backward`, and not scaled.
  std::vector<std::vector<double>> forwards{}, backwards{};
  std::vector<double> scales{};            ///< [m] of passes and messages; .5 is half a micro-batch
  std::vector<std::int64_t> pass_bytes{};  ///< [p] activations of one pass
  /// Passes share their activations: a backward runs the forward again where another pass came
  /// between, and a pass that is held keeps kept_bytes.
  bool recompute = false;
  std::vector<std::int64_t> kept_bytes{};  ///< [p] of pass_bytes what each has for itself then
};

/// What a stage does over a stretch of time.
struct TimelineSpan {
  enum class Kind : std::uint8_t { forward, backward, activation, gradient, sync, wait };
  static constexpr int kNone = -1;

  int stage = 0;
  Kind kind = Kind::wait;
  int micro_batch = kNone;  ///< kNone of a sync, of an update, which is a sync here, and of a wait
  double begin = 0;         ///< seconds from the step's begin
  double end = 0;
  /// The stage at the other end of a message, which has a span like this one; else kNone.
  int peer = kNone;
  bool operator==(const TimelineSpan&) const = default;
};

/// Seconds of a step; busy + moving + syncing + waiting are the whole step.
struct StageUse {
  double busy = 0;     ///< forwards and backwards
  double again = 0;    ///< of these, forwards that had run before
  double moving = 0;   ///< messages go
  double syncing = 0;  ///< Sync and update
  double waiting = 0;  ///< the rest: for a neighbour, and at the end for the slowest stage
  int peak_held = 0;   ///< passes
  /// Of peak_held passes, each with room for a whole micro-batch, or with what is kept beside the
  /// activations that all share.
  std::int64_t bytes_held = 0;
};

struct Simulation {
  double seconds = 0;                    ///< of the step
  std::vector<StageUse> stages{};        ///< [p]
  double bubble = 0;                     ///< of all stages' time, what no pass fills; 0 to 1
  double speedup = 0;                    ///< against one device that does all passes and syncs
  std::vector<TimelineSpan> timeline{};  ///< by stage, then by begin; messages may overlap
  /// Empty where the step ends. Else who waits for whom, and the rest is what was reached: "stage
  /// 0 sends activation 1 to stage 1, which sends gradient 0 to stage 0".
  std::string circle{};

  bool ends() const { return circle.empty(); }
};

/// Runs one step. Throws ContractError where the times have other sizes than the pipeline.
Simulation simulate(const Pipeline& pipeline, const PipelineTimes& times);

}  // namespace ringlet::train
