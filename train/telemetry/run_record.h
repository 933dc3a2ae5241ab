// RunRecord: OUT/run.json, which says on which data and machine a run ran and how the work was cut.
// `ringlet report` reads it. It is written when the run starts, and anew when the run is resumed:
// it describes the last start.
//
//   {"ringlet": "0.1.0", "started": "2026-11-21T17:30:00Z",
//    "build": {"commit", "compiler", "build_type"},
//    "data": {"name", "description", "test_contents", "directory", "synthetic_train",
//             "synthetic_test"},
//    "model": {"name", "parameters", "flops_per_sample"},
//    "run": {"epochs", "steps_per_epoch", "planned_steps", "first_step", "batch_of_rank": [..],
//            "shards", "devices": [..], "processes", "machines", "threads", "layout", "sync",
//            "grad_dtype", "precision"},
//    "verification": [{"name", "file", "pairs", "hash"}],
//    "sync": {"predicted_from": "model", "buckets": [{"name", "bytes", "strategy",
//             "predicted_seconds", "taken_seconds"}], "steps", "waited_seconds"},
//    "machine": {"system", "memory_bytes", "cpu": {..}, "gpus": [..], "versions": {..}}}
//
// "build" is there where the program says what it was built from.
//
// "sync" has the plan, where several ranks run. At the run's end it gets what that took on rank 0:
// the steps of this start, the seconds a step that the replica's thread waited, and the median time
// of each bucket's collective ("taken_seconds", not on a GPU). "predicted_seconds" are from "model"
// or "tune" (sync_plan.h), or missing.
//
// "machines" says in words which ranks are on which host; empty where all are on one machine.
// "gpus" and "versions" (of CUDA's libraries) are there where a replica is on a GPU.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "train/reports/reports.h"
#include "train/setup/run_setup.h"

namespace ringlet::train {

/// What a program was built from: commit, compiler, build_type, as far as they are known.
using BuildFacts = std::map<std::string, std::string>;

class RunRecord : public RunListener {
 public:
  /// `setup` must outlive it.
  RunRecord(std::filesystem::path file, const RunSetup& setup, BuildFacts build = {});

  /// Writes the file. Throws FileError.
  void started(const StartReport& report) override;
  /// Writes it anew, with what synchronisation took. Throws FileError.
  void synchronised(const SyncReport& report) override;

 private:
  std::filesystem::path file_;
  const RunSetup& setup_;
  BuildFacts build_;
  std::string record_;  // what was written
};

}  // namespace ringlet::train
