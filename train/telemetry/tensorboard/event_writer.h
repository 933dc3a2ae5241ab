// EventWriter: a run's numbers for TensorBoard, all over the step of the run.
//
//   a step    train/loss, train/learning_rate, train/grad_norm, train/samples_per_second
//   an epoch  epoch/train_loss, epoch/test_loss, epoch/test_accuracy, epoch/samples_per_second,
//             epoch/sync_share, and epoch/bubble of a model in stages
//   pairs     verify/SET/accuracy, verify/SET/xnorm
//
// What is not finite is left out. The file is complete at the end of each epoch, and of the run.
#pragma once

#include <filesystem>

#include "train/reports/reports.h"
#include "train/telemetry/tensorboard/event_file.h"

namespace ringlet::train::tensorboard {

class EventWriter : public train::RunListener {
 public:
  /// A further file in `folder` for a run that goes on after `first_step`. Throws FileError.
  EventWriter(const std::filesystem::path& folder, std::int64_t first_step)
      : first_step_(first_step), file_(folder, first_step + 1) {}

  bool wants_grad_norm() const override { return true; }
  void step_done(const train::StepReport& report) override;
  /// Of an epoch that a run before this one has told already, as it was killed behind that, nothing
  /// is written.
  void epoch_done(const train::EpochReport& report) override;
  /// The same of a verification.
  void verified(const train::VerificationReport& report) override;
  void saved(const std::string& path) override;
  void ended() override { file_.flush(); }

 private:
  std::int64_t first_step_;
  EventFile file_;
};

}  // namespace ringlet::train::tensorboard
