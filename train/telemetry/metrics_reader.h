// Reads what MetricsWriter wrote (metrics.h): the curves of a run, as columns.
//
// Lines of another kind and fields that are not listed here are skipped, so that newer files can be
// read. A run that was killed may leave its last line cut off: that line is skipped, and reported.
// Anything else that is not a line of metrics is an error, with its line number.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/reports/reports.h"

namespace ringlet::train {

/// One entry a step in each column, in the file's order. Numbers that JSON has no word for (NaN,
/// infinity) come as NaN.
struct StepColumns {
  std::vector<std::int64_t> epoch;
  std::vector<std::int64_t> step;
  std::vector<double> loss;
  std::vector<double> lr;
  std::vector<std::int64_t> samples;
  std::vector<double> grad_norm;  ///< empty where no line has one; NaN for lines without

  std::vector<double> seconds;  ///< as grad_norm

  std::size_t size() const { return step.size(); }
};

/// A line of an epoch. NaN for what its line does not hold.
struct EpochMetrics {
  std::int64_t epoch = 0;
  double train_loss = 0;
  double test_loss = 0;
  double test_accuracy = 0;  ///< from 0 to 1
  double seconds = 0;
  double samples_per_second = 0;
  double sync_share = 0;  ///< from 0 to 1
  PhaseSeconds phases;
  std::optional<StagesReport> stages{};  ///< of a model in stages; as the writer had it
  /// What else was found on the test data: "explained", of the field test_explained.
  std::map<std::string, double> test_figures{};
};

/// A line of a verification, of one set. NaN for what its line does not hold.
struct VerificationMetrics {
  std::int64_t step = 0;
  std::string set;
  double accuracy = 0;   ///< from 0 to 1: Accuracy-Flip
  double deviation = 0;  ///< of the folds
  double xnorm = 0;
};

struct Metrics {
  StepColumns steps;
  std::vector<EpochMetrics> epochs;
  std::vector<VerificationMetrics> verifications;
  bool cut_off = false;  ///< the last line breaks off; it is left out
};

/// The longest line that is read, in bytes: ours have about a hundred.
inline constexpr std::size_t kLongestMetricsLine = std::size_t{1} << 16;

/// Reads a file. Throws FileError naming it and the line: not there, no JSON, a field that is
/// missing or has the wrong type, a line beyond kLongestMetricsLine.
Metrics read_metrics(const std::filesystem::path& file);

/// The same for the text of a file; `source` is for messages.
Metrics parse_metrics(std::string_view text, const std::string& source);

}  // namespace ringlet::train
