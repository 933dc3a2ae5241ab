// What a run of `ringlet train` claims before it starts: its folder, which no other run may write
// into meanwhile, and the names of all its files.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "base/descriptor.h"
#include "train/files/run_lock.h"
#include "train/recipe/options.h"

namespace ringlet::app {

/// To be made in the first of a run's processes, and kept until the run has ended.
class RunClaim {
 public:
  /// `command` must outlive it.
  explicit RunClaim(const CLI::App& command) : command_(command) {}

  /// To be called before the state of --resume is read, which tidies it up: claims the folder of
  /// the run if it goes on there, as --resume auto always does. One that goes on elsewhere has only
  /// to find that nobody writes what it reads. Throws FileError.
  void resumed(const train::Files& files);

  /// Claims all that the run will write (app/cli/outputs.h). Throws UsageError and FileError.
  void outputs(const train::TrainOptions& options, int processes);

  /// Claims a folder that the run has just made for itself. Throws FileError.
  void made(const std::filesystem::path& folder);

  /// Null: the run has no folder.
  std::shared_ptr<const train::RunLock> lock() const { return lock_; }

 private:
  const CLI::App& command_;
  std::shared_ptr<const train::RunLock> lock_;
  Descriptor metrics_;  // a pipe's reader would take it for ended without it
  bool resumes_by_itself_ = false;
};

/// Makes ROOT/MODEL-N and returns its path. N counts up, beyond the largest that is there: runs
/// stand in the order in which they began, and two that begin at once get a folder each. Throws
/// FileError.
std::filesystem::path make_run_folder(const std::filesystem::path& root, const std::string& model);

}  // namespace ringlet::app
