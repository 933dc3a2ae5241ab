#include "app/cli/outputs.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>

#include "app/cli/error_exit.h"
#include "app/cli/settings.h"
#include "base/files/atomic_file.h"
#include "data/idx_dataset.h"
#include "data/images/image.h"
#include "data/open_dataset.h"
#include "data/record_dataset.h"
#include "train/files/centres.h"
#include "train/files/state.h"
#include "train/telemetry/metrics.h"
#include "train/telemetry/verification_files.h"

namespace ringlet::app {

namespace {

namespace fs = std::filesystem;

/// What a run writes into its folder.
constexpr std::array kRunFiles{"state",
                               train::kStateBefore,
                               train::kBestFolder,
                               train::kModelFile,
                               train::kBestModelFile,
                               train::kCentresFile,
                               "config.toml",
                               "run.json",
                               "metrics.jsonl",
                               "epochs.csv",
                               train::kRocFile,
                               train::kDistancesFile};
constexpr std::array kStateFiles{"model.safetensors", "optimizer.safetensors", "state.json"};

/// Whether the name is taken, be it by a link that leads nowhere.
bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

/// The whole name without links and dots, also of what is not there yet. A link that leads back to
/// itself stays.
fs::path without_links(const fs::path& file) {
  const fs::path whole = fs::absolute(file);  // weakly_canonical("new") is "new"
  std::error_code error;
  const fs::path real = fs::weakly_canonical(whole, error);
  return error ? whole.lexically_normal() : real;
}

/// Throws UsageError where the folder holds a run, or something that a run would replace.
void require_no_run(const std::string& flag, const fs::path& folder) {
  const std::string named = flag + " " + folder.string();
  if (is_there(folder / "state") || is_there(folder / "model.safetensors")) {
    throw UsageError(fmt::format(
        "{} holds another run; go on with it by --resume {}, or replace it with --force", named,
        folder.string()));
  }
  for (const char* name : kRunFiles) {
    if (!is_there(folder / name)) continue;
    throw UsageError(fmt::format(
        "{} holds a {}, which a run would replace; name another folder, or replace it with --force",
        named, name));
  }
}

}  // namespace

bool holds_run(const fs::path& folder) {
  return is_there(folder / "state") || is_there(folder / "model.safetensors") ||
         is_there(folder / "run.json");
}

CLI::Option* add_force_flag(CLI::App& command, bool& force) {
  return command.add_flag("--force", force,
                          "replace what is there already; what the command reads it never writes");
}

void require_name(const std::string& flag, const fs::path& path) {
  if (path != "-") return;
  throw UsageError(fmt::format(
      "{} - would not write to standard output; name a file or folder (./- for one of that name)",
      flag));
}

Outputs::Outputs(const CLI::App& command, bool force) : force_(force) {
  reads("--config", config_file_of(command));
}

void Outputs::reads(const std::string& flag, const fs::path& file) {
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0) return;
  inputs_.push_back(
      {flag, without_links(file), found.st_dev, found.st_ino, S_ISDIR(found.st_mode)});
}

void Outputs::reads_run(const std::string& flag, const fs::path& folder) {
  if (folder.empty()) return;
  for (const char* name : kRunFiles) reads(flag, folder / name);
  for (const char* name : kStateFiles) reads(flag, folder / "state" / name);
}

void Outputs::reads_data(const std::string& flag, const fs::path& folder) {
  if (folder.empty()) return;
  if (data::is_picture_folder(folder)) reads(flag, folder);
  for (const data::IdxFiles& files : data::all_idx_files(folder)) {
    for (const data::IdxPair& pair : {files.train, files.test}) {
      reads(flag, pair.images);
      reads(flag, pair.labels);
    }
  }
}

void Outputs::reads_data(const train::TrainOptions& options) {
  const std::string& data = options.recipe.data;
  if (data::find_dataset(data) == nullptr) reads_data("--data", data);
  reads_data("--data-dir", options.files.data_dir);
}

void Outputs::writes(const std::string& flag, const fs::path& file) {
  if (file.empty()) return;
  require_name(flag, file);
  require_writable_file(file);
  claim(flag, file, false);
}

void Outputs::writes_folder(const std::string& flag, const fs::path& folder,
                            const std::string& foreign) {
  require_name(flag, folder);
  if (!foreign.empty()) {
    throw UsageError(
        fmt::format("{} {} holds {}, which is not this command's to replace; name "
                    "another folder",
                    flag, folder.string(), foreign));
  }
  claim(flag, folder, false);
  std::error_code error;
  if (is_there(folder) && !fs::is_directory(folder, error)) {
    throw UsageError(fmt::format("{} {} is a file; name a folder", flag, folder.string()));
  }
  const fs::path parent = folder.has_parent_path() ? folder.parent_path() : fs::path(".");
  require_writable_directory(parent);
}

void Outputs::writes_lines(const std::string& flag, const fs::path& file, bool goes_on) {
  if (file == "-") {
    throw UsageError(flag + " - would be a file of that name; standard output is " + flag +
                     " /dev/stdout, the file ./-");
  }
  if (file.empty() || is_stream(file)) return;
  require_writable_file(file);
  claim(flag, file, goes_on && train::holds_metrics(file));
}

void Outputs::writes_run(const std::string& flag, const fs::path& folder, bool own) {
  if (!force_ && !own) require_no_run(flag, folder);
  for (const char* name : kRunFiles) {
    if (own) {  // a run that goes on reads what it writes
      require_not_written(flag, folder / name);
    } else {
      claim(flag, folder / name, true);
    }
  }
}

/// Throws UsageError where the file is an input, by this or another name, a picture in a folder of
/// them, or a folder around an input.
void Outputs::require_not_read(const std::string& flag, const fs::path& file) const {
  const fs::path real = without_links(file), named = fs::absolute(file).lexically_normal();
  const auto refuse = [&](const Input& input) {
    throw UsageError(fmt::format(
        "{} {} is what {} reads, and a command never writes what it reads; name another place",
        flag, file.string(), input.flag));
  };
  const std::string inside = real.native() + '/';
  for (const Input& input : inputs_) {
    if (input.real.native().starts_with(inside)) refuse(input);
  }
  struct stat found {};
  if (::lstat(file.c_str(), &found) != 0) return;  // nothing is lost
  const auto is = [&found](const Input& input) {
    return input.device == found.st_dev && input.number == found.st_ino;
  };
  for (const fs::path& path : {real, named}) {
    for (fs::path at = path; !at.empty(); at = at.parent_path()) {
      const bool is_itself = at == path;
      if (!is_itself && !data::has_image_name(path)) break;
      for (const Input& input : inputs_) {
        if (::stat(at.c_str(), &found) == 0 && is(input) && (is_itself || input.is_folder)) {
          refuse(input);
        }
      }
      if (at == at.parent_path()) break;
    }
  }
}

/// Throws UsageError where this is to be written already, as itself, in a folder or around one.
void Outputs::require_not_written(const std::string& flag, const fs::path& file) {
  const fs::path target = without_links(file);
  const auto refuse = [&](const Outputs::Written::const_iterator& written) {
    throw UsageError(fmt::format("{} {} is what {} writes too; name another file", flag,
                                 file.string(), written->second));
  };
  for (fs::path at = target;; at = at.parent_path()) {
    if (const auto found = outputs_.find(at.native()); found != outputs_.end()) refuse(found);
    if (at == at.parent_path()) break;
  }
  const std::string inside = target.native() + '/';
  const auto next = outputs_.lower_bound(inside);
  if (next != outputs_.end() && next->first.starts_with(inside)) refuse(next);
  outputs_.emplace(target.native(), flag);
}

void Outputs::claim(const std::string& flag, const fs::path& file, bool may_be_there) {
  require_not_read(flag, file);
  require_not_written(flag, file);
  if (force_ || may_be_there || !is_there(file)) return;
  throw UsageError(
      fmt::format("{} {} is there already; replace it with --force", flag, file.string()));
}

}  // namespace ringlet::app
