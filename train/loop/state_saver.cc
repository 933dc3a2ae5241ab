#include "train/loop/state_saver.h"

#include <fmt/format.h>

#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "base/files/input_file.h"
#include "base/files/posix_file.h"
#include "base/machine.h"
#include "train/files/centres.h"
#include "train/files/row_files.h"
#include "train/loop/diagnose.h"
#include "train/loop/on_rank_0.h"

namespace ringlet::train {

namespace {

namespace fs = std::filesystem;

std::int64_t bytes_of_centres(const nn::Registry& registry) {
  std::int64_t bytes = 0;
  for (const auto* p : registry.parameters) {
    if (p->of_loss) bytes += p->shape.count() * static_cast<std::int64_t>(sizeof(float));
  }
  return bytes;
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directory(path, error);
  if (error) throw posix::file_error("make the folder", path, error.value());
}

/// Whether the state in the run's folder is the one that the run goes on from.
bool goes_on_there(const RunSetup& setup) {
  std::error_code error;
  return setup.resumed &&
         fs::equivalent(setup.resumed->folder, setup.options.files.out / "state", error);
}

}  // namespace

StateSaver::StateSaver(const RunSetup& setup, Device& device, comm::Communicator& communicator,
                       StageState* whole)
    : setup_(setup),
      device_(device),
      communicator_(communicator),
      whole_(whole),
      former_(goes_on_there(setup) ? FormerState::kept : FormerState::removed) {}

/// The whole model's.
const nn::Registry& StateSaver::registry_of(TrainStep& step) const {
  return whole_ != nullptr ? whole_->registry() : step.replica().parameters().registry();
}

bool StateSaver::due(std::int64_t step) const {
  const Files& files = setup_.options.files;
  if (files.out.empty()) return false;
  if (step == setup_.last_step) return true;
  if (files.save_every > 0) return step % files.save_every == 0;
  return step % setup_.partition.steps_per_epoch() == 0;
}

/// As on_rank_0(), and nothing is written into a folder that took the place of the run's.
template <class Work>
void StateSaver::on_rank_0_in_out(Work work) {
  on_rank_0(communicator_, device_, "saving", [&] {
    if (setup_.lock) setup_.lock->require_held();
    if (lock_) lock_->require_held();
    work();
  });
}

void StateSaver::save(TrainStep& step, const Progress& progress, RunReporter& reporter) {
  if (saved_step_ == progress.step && (saved_end_ || !ends_with(progress))) return;
  if (holds(progress.step) && !ends_with(progress)) return;
  saved_step_ = progress.step;
  saved_end_ = ends_with(progress);
  const auto write_state = [&](AtomicDirectory& folder, const HostState& state) {
    write(folder, state, step, progress, reporter);
  };
  step.swap_average();
  on_rank_0_with_rows(setup_.options.files.out / "state", step, progress, step.optimizer().state(),
                      write_state);
  step.swap_average();
}

template <class Write>
void StateSaver::on_rank_0_with_rows(const fs::path& target, TrainStep& step,
                                     const Progress& progress,
                                     std::span<const StateArena> optimizer, Write write) {
  const bool sharded = whole_ != nullptr ? whole_->is_sharded() : step.is_sharded();
  const bool apart =
      sharded && bytes_of_centres(registry_of(step)) > setup_.options.files.most_centres_sent;
  HostState state;
  communicator_.set_activity("saving");
  if (whole_ != nullptr) {
    state = whole_->collect(step, !apart);
  } else if (sharded) {
    state = step.download_state(!apart);  // others than rank 0 have a part
  }
  std::optional<AtomicDirectory> folder;
  if (apart) {
    fs::path aside;
    on_rank_0_in_out([&] {
      aside = folder.emplace(target).path();
      make_folder(aside / kCentresFolder);
    });
    state.rows_apart = write_rows(aside, step, progress, optimizer);
  }
  on_rank_0_in_out([&] {
    if (!sharded && whole_ == nullptr) state = step.download_state();
    require_finite(state, registry_of(step), progress.step);
    if (!folder) folder.emplace(target);
    write(*folder, state);
  });
}

/// On rank 0, `aside` is the folder to be; the result is of all ranks there.
RowsApart StateSaver::write_rows(const fs::path& aside, TrainStep& step, const Progress& progress,
                                 std::span<const StateArena> optimizer) {
  Stream& stream = device_.communication();
  const fs::path folder =
      communicator_.gather_text(stream, aside.string(), "folder of the centres").front();
  std::error_code error;
  if (!fs::is_directory(folder / kCentresFolder, error)) {
    throw FileError(fmt::format(
        "{} is not seen on {}: there are more centres than rank 0 shall have, and each process "
        "writes its own there; --out has to be in a folder that all of them share",
        folder.string(), host_name()));
  }
  std::string told;
  if (step.rows() != nullptr && step.rows()->has_loss()) {  // else they are another stage's
    const ShardedRows::Written mine =
        step.rows()->write(folder / kCentresFolder, optimizer, progress.step);
    told = fmt::format("{} {} {} {}", mine.name, mine.sum, mine.bytes, mine.hash);
  }
  communicator_.await_all(stream, "saving");  // as long as the slowest disk takes
  const auto all = communicator_.gather_text(stream, told, "files of the centres");
  RowsApart rows;
  std::uint64_t sum_of_hashes = 0;
  for (std::size_t rank = 0; rank < all.size() && communicator_.rank() == 0; ++rank) {
    if (all[rank].empty()) continue;
    std::istringstream words(all[rank]);
    std::string name, sum;
    std::uint64_t bytes = 0, hash = 0;
    words >> name >> sum >> bytes >> hash;
    const fs::path file = folder / kCentresFolder / name;
    if (fs::file_size(file, error) != bytes || error) {
      throw FileError(fmt::format(
          "{}, which replica {} wrote, is not seen on {}; --out has to be in a folder that all "
          "processes share",
          file.string(), static_cast<int>(rank) % setup_.replicas, host_name()));
    }
    rows.sums[fs::path(kCentresFolder) / name] = sum;
    sum_of_hashes += hash;
  }
  rows.hash = hash_in_words(sum_of_hashes);
  return rows;
}

void StateSaver::save_best(TrainStep& step, const Progress& progress) {
  const auto write_best = [&](AtomicDirectory& folder, const HostState& state) {
    const nn::Registry& registry = registry_of(step);
    save_model(folder.path() / kModelFile, registry, state, setup_.model);
    if (state.rows_apart) {
      save_centres_index(folder.path() / kCentresFolder / kIndexFile, registry,
                         state.rows_apart->hash, setup_.model);
    } else if (has_centres(registry)) {
      save_centres(folder.path() / kCentresFile, registry, state, setup_.model);
    }
    folder.commit();
  };
  step.swap_average();
  on_rank_0_with_rows(setup_.options.files.out / kBestFolder, step, progress, {}, write_best);
  step.swap_average();
}

void StateSaver::save_best_model(TrainStep& step, const Progress& progress) {
  communicator_.set_activity("saving");
  step.swap_average();
  const bool whole_here = whole_ == nullptr && !step.is_sharded();
  HostState state;
  if (whole_ != nullptr) state = whole_->collect(step);
  if (whole_ == nullptr && !whole_here) state = step.download_state();
  on_rank_0_in_out([&] {
    if (whole_here) state = step.download_state();
    require_finite(state, registry_of(step), progress.step);
    save_model(setup_.options.files.out / kBestModelFile, registry_of(step), state, setup_.model);
  });
  step.swap_average();
}

namespace {

void copy_file_atomically(const fs::path& from, const fs::path& to) {
  constexpr std::size_t kPiece = 1 << 20;
  std::ifstream source = open_input(from);
  AtomicFile target(to);
  std::vector<char> piece(kPiece);
  while (source.read(piece.data(), kPiece), source.gcount() > 0) {
    target.write(piece.data(), static_cast<std::size_t>(source.gcount()));
  }
  target.commit();
}

}  // namespace

void StateSaver::begin() {
  const fs::path& out = setup_.options.files.out;
  if (!out.empty() && !setup_.lock) lock_.emplace(out);
  require_own_folder(setup_);
  // Not before all that the run begins with is read: a start that fails leaves the former run.
  if (!out.empty() && !goes_on_in_out(setup_)) remove_former_run(out);
  bring_best();
}

void StateSaver::bring_best() const {
  const fs::path& out = setup_.options.files.out;
  if (!setup_.resumed || out.empty() || goes_on_there(setup_)) return;
  const fs::path former_out = setup_.resumed->folder.parent_path();
  const fs::path former = former_out / kBestFolder;
  std::error_code error;
  if (setup_.resumed->progress.best_test && fs::exists(former_out / kBestModelFile, error)) {
    copy_file_atomically(former_out / kBestModelFile, out / kBestModelFile);
  }
  if (setup_.resumed->progress.best.empty() || !fs::is_directory(former, error)) return;
  AtomicDirectory folder(out / kBestFolder);
  for (const char* name : {kModelFile, kCentresFile, kCentresFolder}) {
    if (!fs::exists(former / name, error)) continue;
    fs::copy(former / name, folder.path() / name, fs::copy_options::recursive, error);
    if (error) throw posix::file_error("write", folder.path() / name, error.value());
  }
  folder.commit();
}

/// Whether the run's model is the one after progress.step.
bool StateSaver::ends_with(const Progress& progress) const {
  return progress.step == setup_.last_step || progress.stopped;
}

/// Whether OUT/state is the state after `step`. The same on all ranks.
bool StateSaver::holds(std::int64_t step) const {
  return saved_step_ == step || (goes_on_there(setup_) && step == setup_.first_step);
}

void StateSaver::note_tested(const Progress& progress) {
  if (setup_.options.files.out.empty() || !holds(progress.step)) return;
  on_rank_0_in_out([&] {
    communicator_.set_activity("saving");
    save_progress(setup_.options.files.out, progress);
  });
}

void StateSaver::write(AtomicDirectory& folder, const HostState& state, TrainStep& step,
                       const Progress& progress, RunReporter& reporter) {
  const Files& files = setup_.options.files;
  const fs::path& out = files.out;
  const nn::Registry& registry = registry_of(step);
  if (!ends_with(progress)) remove_end(out);  // of a run that goes on: it is older than the state
  save_state(folder, out, registry, state, setup_.model, setup_.options.recipe, progress,
             setup_.data.train->hash(), std::exchange(former_, FormerState::kept));
  reporter.saved((out / "state").string());
  if (!ends_with(progress)) return;
  save_model(out / "model.safetensors", registry, state, setup_.model);
  reporter.saved((out / "model.safetensors").string());
  if (!has_centres(registry)) return;
  if (!state.rows_apart) {
    save_centres(out / kCentresFile, registry, state, setup_.model);
  } else if (bytes_of_centres(registry) <= files.most_centres_in_file) {
    join_centres(out / "state" / kCentresFolder, out / kCentresFile);
  } else {
    std::error_code error;
    fs::remove(out / kCentresFile, error);  // a former run's
    return reporter.saved((out / "state" / kCentresFolder).string());
  }
  reporter.saved((out / kCentresFile).string());
}

}  // namespace ringlet::train
