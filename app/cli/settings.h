// Flags that are set elsewhere than on the command line. Which one counts, first to last:
//
//   the command line   --batch-size 256
//   the environment    RINGLET_BATCH_SIZE=256
//   a file             --config FILE, or RINGLET_CONFIG=FILE: batch-size = 256
//   the default        of the model, or of the flag
//
// A flag that is set also silences, further down, the flags that it cannot be combined with:
// --replicas on the command line silences the devices of the file.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "app/cli/commands.h"

namespace ringlet::app {

/// The command that the user chose, however deep; the program itself if none.
CLI::App* chosen_command(CLI::App& app);

/// The flag's name in files: its first long name without dashes; empty: it has none.
std::string key_of(const CLI::Option& option);
/// Its variable: "batch-size" is RINGLET_BATCH_SIZE, and "data" RINGLET_DATASET (RINGLET_DATA names
/// the folder of Fashion-MNIST, as ever).
std::string variable_of(const std::string& key);
/// Whether it takes no value: true where it stands.
bool is_switch(const CLI::Option& option);
/// Whether files and variables may set it: all but those that ask for help or name the file.
bool can_be_set(const CLI::Option& option);

/// The configuration file that the command was given; empty: none.
std::string config_file_of(const CLI::App& command);

class Settings {
 public:
  /// Adds --config and --print-config to each command of `app` that has flags; all commands must
  /// have been added. From here on apply() checks for required flags, not CLI11.
  explicit Settings(CLI::App& app);

  /// After app.parse(): sets what the command line left open. Throws ConfigError naming the file
  /// and line or the variable, and CLI::RequiredError. Warnings go to `warnings`, a line each.
  void apply(std::vector<std::string>& warnings);

  /// Whether --print-config was given.
  bool print_only() const { return print_only_; }

 private:
  struct Setting {
    CLI::Option* option;
    std::vector<std::string> values;
    std::string origin;  ///< "run.toml:3: batch-size" or "RINGLET_BATCH_SIZE"
  };

  void prepare(CLI::App& command);
  std::vector<Setting> from_environment() const;
  std::vector<Setting> from_file(const std::string& file) const;
  void apply(const std::vector<Setting>& level);
  std::vector<std::string> suspicious_variables() const;

  CLI::App& app_;
  CLI::App* command_ = nullptr;      ///< the chosen one, in apply()
  std::set<std::string> keys_;       ///< of all commands
  std::set<CLI::Option*> required_;  ///< of all commands
  std::string file_;
  bool print_only_ = false;
};

/// All flags of `command` in their groups, each with its text from --help. The value is the one
/// that was given, else the one that the command chose (`resolved`), else the flag's default. A
/// flag without a value, or that another one replaces, is a comment. --force and --resume are left
/// out: they are no property of a run.
std::string effective_config(const CLI::App& command, const FlagValues& resolved);

}  // namespace ringlet::app
