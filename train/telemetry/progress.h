// How far a run is, as text that fits a terminal: the line of progress, and the table with a row
// for each epoch. Where there is no room for all, what says least is left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "train/reports/reports.h"

namespace ringlet::train {

/// Columns of the terminal that `out` writes to, at this moment; 0 where it is none.
int terminal_columns(std::FILE* out);

/// Columns for text that is not to wrap: those of the terminal but the last, in which some have
/// wrapped already. Without a terminal as many as one likes.
std::size_t room_on(std::FILE* out);

/// What the line of progress says.
struct RunProgress {
  std::int64_t epoch = 0, epochs = 0;
  std::int64_t step_in_epoch = 0, steps_per_epoch = 0;
  double loss = 0;
  double samples_per_second = 0;
  double seconds_left = 0;
  double data_share = 0;   ///< part of the time that was spent waiting for data
  std::int64_t skips = 0;  ///< under f16: steps that were skipped
};

/// "epoch 1/6  step 12/469  loss 0.5432  12,345 samples/s  1:03 min left", without an end of line.
///
/// It ends with "43 % waiting for data" where that is a tenth of the time or more, and with
/// "2 skipped" where steps were.
std::string progress_line(const RunProgress& progress, std::size_t room);

class ProgressTable {
 public:
  /// The columns that have room, whatever becomes of the terminal: head and rows go together.
  /// `measured`: what the column of the task's own figure is called.
  explicit ProgressTable(std::size_t room = std::numeric_limits<std::size_t>::max(),
                         const char* measured = "test accuracy");

  std::string head() const;
  std::string row(const EpochReport& report) const;

 private:
  std::vector<std::string> heads_;
  std::vector<std::size_t> columns_;
};

}  // namespace ringlet::train
