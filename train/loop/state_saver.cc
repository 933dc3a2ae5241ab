#include "train/loop/state_saver.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/files/atomic_file.h"
#include "base/files/posix_file.h"
#include "train/files/centres.h"
#include "train/loop/diagnose.h"
#include "train/loop/on_rank_0.h"

namespace ringlet::train {

namespace {

/// Whether the state in the run's folder is the one that the run goes on from.
bool goes_on_there(const RunSetup& setup) {
  return setup.resumed && setup.resumed->folder == setup.options.files.out / "state";
}

}  // namespace

StateSaver::StateSaver(const RunSetup& setup, Device& device, comm::Communicator& communicator)
    : setup_(setup),
      device_(device),
      communicator_(communicator),
      former_(goes_on_there(setup) ? FormerState::kept : FormerState::removed) {}

bool StateSaver::due(std::int64_t step) const {
  const Files& files = setup_.options.files;
  if (files.out.empty()) return false;
  if (step == setup_.last_step) return true;
  if (files.save_every > 0) return step % files.save_every == 0;
  return step % setup_.partition.steps_per_epoch() == 0;
}

void StateSaver::save(TrainStep& step, const Progress& progress, RunReporter& reporter) {
  if (saved_step_ == progress.step) return;
  if (holds(progress.step) && progress.step != setup_.last_step) return;
  saved_step_ = progress.step;
  HostState rows;  // where others than rank 0 have a part
  communicator_.set_activity("saving");
  if (step.is_sharded()) rows = step.download_state();
  on_rank_0(communicator_, device_, "saving", [&] {
    write(step.is_sharded() ? rows : step.download_state(), step, progress, reporter);
  });
}

void StateSaver::save_best(TrainStep& step, const Progress& progress) {
  HostState rows;
  communicator_.set_activity("saving");
  if (step.is_sharded()) rows = step.download_state();
  on_rank_0(communicator_, device_, "saving", [&] {
    const HostState state = step.is_sharded() ? std::move(rows) : step.download_state();
    const nn::Registry& registry = step.replica().parameters().registry();
    require_finite(state, registry, progress.step);
    AtomicDirectory folder(setup_.options.files.out / kBestFolder);
    save_model(folder.path() / kModelFile, registry, state, setup_.model);
    if (has_centres(registry)) {
      save_centres(folder.path() / kCentresFile, registry, state, setup_.model);
    }
    folder.commit();
  });
}

void StateSaver::bring_best() const {
  namespace fs = std::filesystem;
  const fs::path& out = setup_.options.files.out;
  if (!setup_.resumed || out.empty() || goes_on_there(setup_)) return;
  const fs::path former = setup_.resumed->folder.parent_path() / kBestFolder;
  std::error_code error;
  if (setup_.resumed->progress.best.empty() || !fs::is_directory(former, error)) return;
  AtomicDirectory folder(out / kBestFolder);
  for (const char* name : {kModelFile, kCentresFile}) {
    if (!fs::exists(former / name, error)) continue;
    fs::copy_file(former / name, folder.path() / name, fs::copy_options::overwrite_existing, error);
    if (error) throw posix::file_error("write", folder.path() / name, error.value());
  }
  folder.commit();
}

/// Whether OUT/state is the state after `step`. The same on all ranks.
bool StateSaver::holds(std::int64_t step) const {
  return saved_step_ == step || (goes_on_there(setup_) && step == setup_.first_step);
}

void StateSaver::note_tested(const Progress& progress) {
  if (setup_.options.files.out.empty() || !holds(progress.step)) return;
  on_rank_0(communicator_, device_, "saving", [&] {
    communicator_.set_activity("saving");
    save_progress(setup_.options.files.out, progress);
  });
}

void StateSaver::write(const HostState& state, TrainStep& step, const Progress& progress,
                       RunReporter& reporter) {
  const std::filesystem::path& out = setup_.options.files.out;
  const nn::Registry& registry = step.replica().parameters().registry();
  require_finite(state, registry, progress.step);
  save_state(out, registry, state, setup_.model, setup_.options.recipe, progress,
             setup_.data.train->hash(), std::exchange(former_, FormerState::kept));
  reporter.saved((out / "state").string());
  if (progress.step != setup_.last_step) return;
  save_model(out / "model.safetensors", registry, state, setup_.model);
  reporter.saved((out / "model.safetensors").string());
  if (!has_centres(registry)) return;
  save_centres(out / kCentresFile, registry, state, setup_.model);
  reporter.saved((out / kCentresFile).string());
}

}  // namespace ringlet::train
