// Flags that are set elsewhere than on the command line. Which one counts, first to last:
//
//   the command line   --batch-size 256
//   the environment    RINGLET_BATCH_SIZE=256
//   a file             --config FILE, or RINGLET_CONFIG=FILE: batch-size = 256
//   the default        of the model, or of the flag
//
// A flag that is set also silences, further down, the flags that it cannot be combined with:
// --replicas on the command line silences the devices of the file. What is of another kind in
// another command (processes is a number in one and a switch in another) goes to that alone.
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

/// The variable that a sweep sets for its runs. What all of them would write at once (metrics,
/// tensorboard, trace) they take from no file and no other variable.
inline constexpr const char* kOfSweep = "RINGLET_OF_SWEEP";

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

  /// `message`, and of each flag that it names where that was set, unless on the command line:
  /// "... leave --lr out (--lr is set by RINGLET_LR)".
  std::string with_origins(const std::string& message) const;

  /// Whether --print-config was given.
  bool print_only() const { return print_only_; }

 private:
  struct Setting {
    CLI::Option* option;
    std::vector<std::string> values;
    std::string origin;      ///< "run.toml:3: batch-size" or "RINGLET_BATCH_SIZE"
    bool is_of_run = false;  ///< of a file that a run keeps
  };

  void prepare(CLI::App& command);
  std::vector<Setting> from_environment();
  std::vector<Setting> from_file(const std::string& file, const char* named_by);
  void apply(const std::vector<Setting>& level);
  /// Whether a flag of this name of another command takes the values.
  bool suits_another(const std::string& key, const std::vector<std::string>& values, bool is_truth,
                     bool is_list) const;
  void pass_over(const std::string& origin);
  std::vector<std::string> suspicious_variables() const;

  CLI::App& app_;
  CLI::App* command_ = nullptr;                        ///< the chosen one, in apply()
  std::set<std::string> keys_;                         ///< of all commands
  std::set<CLI::Option*> required_;                    ///< of all commands
  std::map<const CLI::Option*, std::string> origins_;  ///< of what is not the command line's
  std::vector<std::string> passed_over_;               ///< in words
  std::string file_;
  bool print_only_ = false;
};

/// All flags of `command` in their groups, each with its text from --help. The value is the one
/// that was given, else the one that the command chose (`resolved`), else the flag's default. A
/// flag without a value, or that another one replaces, is a comment. --force and --resume are left
/// out: they are no property of a run.
std::string effective_config(const CLI::App& command, const FlagValues& resolved);

}  // namespace ringlet::app
