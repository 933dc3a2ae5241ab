// What a command writes, by one rule:
//
//   - What is there already is replaced only with --force.
//   - What the command reads is never written, also with --force, and under no other name or link.
//   - What cannot be written is told before the work, not after it.
//
// A command says what it reads, and then asks for each thing that it will write, before it starts.
// An empty path means that nothing is read or written.
#pragma once

#include <sys/types.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "train/recipe/options.h"

namespace ringlet::app {

/// Adds --force.
CLI::Option* add_force_flag(CLI::App& command, bool& force);

/// Throws UsageError where `path` is "-", which other programs take for standard output: here it
/// would become a file or folder of that name.
void require_name(const std::string& flag, const std::filesystem::path& path);

/// Whether a run has begun in the folder.
bool holds_run(const std::filesystem::path& folder);

class Outputs {
 public:
  /// `command`: its configuration file is read.
  Outputs(const CLI::App& command, bool force);

  /// The command reads this file, or the pictures in this folder. `flag` is how the user named it.
  void reads(const std::string& flag, const std::filesystem::path& file);
  /// It reads the files of a run's folder.
  void reads_run(const std::string& flag, const std::filesystem::path& folder);
  /// It reads the data in this folder, if there are any: IDX files, or pictures.
  void reads_data(const std::string& flag, const std::filesystem::path& folder);
  /// It reads the data that --data and --data-dir name.
  void reads_data(const train::TrainOptions& options);

  /// The command will write this file. Throws UsageError by the rule, FileError where it cannot.
  void writes(const std::string& flag, const std::filesystem::path& file);
  /// It will write this folder as a whole. `foreign`: something in it that is not the command's to
  /// replace, also with --force; empty: there is none.
  void writes_folder(const std::string& flag, const std::filesystem::path& folder,
                     const std::string& foreign);
  /// A file to which lines are appended: into a device or a pipe they just go. `goes_on`: its own
  /// lines stay, so metrics that are there already are no hindrance.
  void writes_lines(const std::string& flag, const std::filesystem::path& file, bool goes_on);
  /// The files of a run, in its folder. `own`: they are those of the run that goes on there.
  void writes_run(const std::string& flag, const std::filesystem::path& folder, bool own);

 private:
  struct Input {
    std::string flag;
    std::filesystem::path real;  // without links
    dev_t device;
    ino_t number;
    bool is_folder;
  };
  using Written = std::map<std::string, std::string, std::less<>>;  // the flag, by the file

  void require_not_read(const std::string& flag, const std::filesystem::path& file) const;
  void require_not_written(const std::string& flag, const std::filesystem::path& file);
  void claim(const std::string& flag, const std::filesystem::path& file, bool may_be_there);

  bool force_;
  std::vector<Input> inputs_;
  Written outputs_;
};

}  // namespace ringlet::app
