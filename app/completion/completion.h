// What a shell needs to complete a command line: the commands and flags of a CLI::App, and scripts
// made of them.
//
//   source <(ringlet completion bash)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace ringlet::app {

/// The type's name of words that are the program's commands.
inline constexpr const char* kCommandWords = "[COMMAND...]";

/// The words that may follow a flag, or stand where no flag stands.
struct ValueSpec {
  enum class Files : std::uint8_t { none, files, folders };
  bool taken = false;                ///< false: a switch, or a command without words of its own
  std::vector<std::string> choices;  ///< words that are right; empty where they are not known
  Files files = Files::none;
};

struct FlagSpec {
  std::vector<std::string> names;  ///< "--help", "-h"
  std::string brief;               ///< its description up to the first stop
  ValueSpec value;
};

struct CommandSpec {
  std::string name;
  std::string brief;
  std::vector<FlagSpec> flags;
  ValueSpec word;  ///< of the words that are no flags
  std::vector<CommandSpec> commands;
};

/// Reads `app` and all below it. The words that a flag takes are read from its type's name, as in
/// naive|ring|doubling. Words in capitals are placeholders; FILE and DIR stand for paths.
CommandSpec describe(const CLI::App& app);

std::string bash_completion(const CommandSpec& program);
std::string zsh_completion(const CommandSpec& program);
std::string fish_completion(const CommandSpec& program);

}  // namespace ringlet::app
