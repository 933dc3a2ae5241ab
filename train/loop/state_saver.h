// StateSaver: writes a run's states, and at its end the model, where the options ask for them.
//
// Rank 0 writes. The others wait for it as long as the disk takes. Of a loss with so many centres
// that rank 0 shall not have them all (Files::most_centres_sent), each rank writes its own, into
// the folder that rank 0 has made aside. Rank 0 then sees that they are there, and renames it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "base/files/atomic_file.h"
#include "comm/communicator.h"
#include "train/files/run_lock.h"
#include "train/loop/run_reporter.h"
#include "train/loop/stage_state.h"
#include "train/loop/train_step.h"
#include "train/setup/run_setup.h"

namespace ringlet::train {

class StateSaver {
 public:
  /// `communicator`: of all ranks. `whole`: where the model is cut into stages; null: it is not.
  StateSaver(const RunSetup& setup, Device& device, comm::Communicator& communicator,
             StageState* whole = nullptr);

  /// Whether a state is to be saved when `step` steps are done: every so many, or at the end of
  /// each epoch, and at the end of the run. The same on all ranks.
  bool due(std::int64_t step) const;

  /// Saves what `step` has, unless OUT/state is that already; with the last step, the model beside
  /// it. Throws Error where numbers are not finite: the former state then stays. Collective. Of a
  /// run that keeps files, with no step in flight.
  void save(TrainStep& step, const Progress& progress, RunReporter& reporter);

  /// Writes the model of a verification that is the best so far to OUT/best, as one folder.
  /// Collective. Throws as save() does.
  void save_best(TrainStep& step, const Progress& progress);
  /// Writes the model of the best test so far to OUT/model.best.safetensors. Collective. Throws as
  /// save() does.
  void save_best_model(TrainStep& step, const Progress& progress);
  /// On rank 0, when all that the run begins with is read: removes what a former run has left in
  /// OUT. Where the run goes on from another folder, it takes the best models of that one along.
  /// Claims OUT, unless RunSetup::lock does. Throws FileError for a folder that is another run's.
  void begin();

  /// After an evaluation or a verification: where OUT/state is the state of this step, it says from
  /// now on what was done. Collective.
  void note_tested(const Progress& progress);

 private:
  void bring_best() const;
  bool holds(std::int64_t step) const;
  bool ends_with(const Progress& progress) const;
  const nn::Registry& registry_of(TrainStep& step) const;
  void write(AtomicDirectory& folder, const HostState& state, TrainStep& step,
             const Progress& progress, RunReporter& reporter);
  template <class Work>
  void on_rank_0_in_out(Work work);
  /// Calls write(folder, state) on rank 0, where `target` is the folder's name. Collective.
  template <class Write>
  void on_rank_0_with_rows(const std::filesystem::path& target, TrainStep& step,
                           const Progress& progress, std::span<const StateArena> optimizer,
                           Write write);
  RowsApart write_rows(const std::filesystem::path& aside, TrainStep& step,
                       const Progress& progress, std::span<const StateArena> optimizer);

  const RunSetup& setup_;
  Device& device_;
  comm::Communicator& communicator_;
  StageState* whole_;
  std::int64_t saved_step_ = -1;
  bool saved_end_ = false;  // with it, the run's model
  FormerState former_;      // of the next save
  std::optional<RunLock> lock_;
};

}  // namespace ringlet::train
