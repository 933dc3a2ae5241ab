// The steps of a pipeline in the trace of a run, and what each stage did in them.
//
// A trace names the actions of a rank's program (train/pipeline/program.h), each with the stages
// that its messages go to and come from. So it says which stage a rank is of; of several ranks of
// one stage, which are its replicas, the lowest is looked at. A step ends with a Sync.
//
// A message goes from when both its ranks have come to their Moves until its own rank's Move is
// over; what is before that is waiting, and so is all time that no action has.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "train/pipeline/simulate.h"

namespace ringlet::app::report {

struct TracedPipeline {
  int replicas = 1;
  int micro_batches = 0;
  std::vector<int> ranks{};                ///< [p] those that are looked at
  std::vector<train::Simulation> steps{};  ///< as simulate() tells them; bytes are not known
  std::int64_t left_out = 0;               ///< spans that came when the trace was full

  int stages() const { return static_cast<int>(ranks.size()); }
  /// A step in the middle, by its time, of those behind the first two, if there are any.
  int typical_step() const;
};

/// Throws FileError naming the file: no trace, none of a pipeline, without some of its stages, or
/// with a message that nobody receives.
TracedPipeline read_pipeline(const std::filesystem::path& file);
/// The same for the text of a file; `source` is for messages.
TracedPipeline parse_pipeline(std::string_view text, const std::string& source);

}  // namespace ringlet::app::report
