// EpochTable: a run's epochs as comma-separated values, for spreadsheets. The first line names the
// columns, each epoch adds a line:
//
//   epoch,train_loss,test_loss,test_accuracy,seconds,samples_per_second,sync_share,
//     data_seconds,forward_seconds,backward_seconds,sync_seconds,update_seconds
//
// and a column for each figure that the task tells of training (Task::told_of_training).
//
// test_accuracy and sync_share are from 0 to 1. The last five are rank 0's seconds by phase. What
// is not finite is left empty.
#pragma once

#include <filesystem>
#include <vector>

#include "base/files/line_file.h"
#include "train/reports/reports.h"

namespace ringlet::train {

class EpochTable : public RunListener {
 public:
  /// As MetricsWriter: a resumed run keeps the epochs that were whole by its first step. Throws
  /// FileError. `told`: figures of the names that those of the reports will have.
  EpochTable(const std::filesystem::path& path, std::int64_t first_step,
             std::int64_t steps_per_epoch, const std::vector<Figure>& told = {});

  void epoch_done(const EpochReport& report) override;

 private:
  std::int64_t told_epoch_ = 0;  // the last one whose line is kept
  LineFile file_;
};

}  // namespace ringlet::train
