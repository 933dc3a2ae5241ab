// RunFiles: the files that a run writes for others while it goes on.
//
//   --metrics FILE      a line of JSON a step and an epoch (metrics.h)
//   --tensorboard DIR   an event file (tensorboard/event_writer.h)
//   OUT/metrics.jsonl   as --metrics
//   OUT/epochs.csv      a line an epoch (epoch_table.h)
//   OUT/roc.csv         the last verification (verification_files.h)
//   OUT/distances.csv   the same
//   OUT/run.json        data and machine (run_record.h)
#pragma once

#include <memory>
#include <vector>

#include "train/reports/reports.h"
#include "train/setup/run_setup.h"
#include "train/telemetry/run_record.h"

namespace ringlet::train {

class RunFiles {
 public:
  /// Opens the files that `setup` asks for, which must outlive this. Those of a former run in its
  /// folder are begun anew. Throws FileError.
  explicit RunFiles(const RunSetup& setup, const BuildFacts& build = {});

  /// The listeners for train() that write the files.
  std::vector<RunListener*> listeners() const;

 private:
  std::vector<std::unique_ptr<RunListener>> files_;
};

}  // namespace ringlet::train
