// RunFacts: OUT/run.json (train/telemetry/run_record.h) read back. Every field may be missing: a
// text is empty then, and a number NaN.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace ringlet::app::report {

struct RunFacts {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  /// One of a step's all-reduces.
  struct Sum {
    std::string name, strategy;
    double bytes = kNone;
    double predicted_seconds = kNone, taken_seconds = kNone;
  };

  std::string ringlet;  ///< its version, and those of the libraries that a GPU needed
  std::string started;  ///< "2026-11-21T17:30:00Z"

  std::string data, data_description, test_contents, data_directory;
  double synthetic_train = kNone, synthetic_test = kNone;

  std::string model;
  double parameters = kNone;

  double epochs = kNone, planned_steps = kNone;
  double batch = kNone, replicas = kNone, processes = kNone, threads = kNone;
  std::string devices;   ///< "cpu:0, cpu:0"
  std::string machines;  ///< "ranks 0 and 1 are on a, ranks 2 and 3 are on b"; empty: one machine
  std::string sync, layout, precision;

  std::vector<Sum> sums;
  std::string predicted_from;     ///< "tune", "model" or ""
  double waited_seconds = kNone;  ///< a step, by replica 0

  std::string system, processor, instruction_set, openblas;
  double cores = kNone, memory_bytes = kNone;
  std::string gpus;  ///< "NVIDIA H200 (cuda:0)"; empty where none was used
};

/// Throws FileError where the text of `source` is no JSON.
RunFacts parse_run_facts(std::string_view text, const std::string& source);

}  // namespace ringlet::app::report
