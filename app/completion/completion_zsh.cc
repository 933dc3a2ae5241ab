#include <fmt/format.h>

#include <algorithm>

#include "app/completion/completion.h"

namespace ringlet::app {

namespace {

/// Within single quotes, with what means something to _arguments and _describe escaped.
std::string zsh_quoted(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

/// ":value:(ring naive)", what _arguments calls a message and an action.
std::string action(const ValueSpec& value) {
  if (!value.taken) return "";
  const std::string words = fmt::format("{}", fmt::join(value.choices, " "));
  const std::string files = value.files == ValueSpec::Files::files     ? "_files"
                            : value.files == ValueSpec::Files::folders ? "_files -/"
                                                                       : "";
  if (words.empty()) return ":value:" + (files.empty() ? " " : files);
  if (files.empty()) return fmt::format(":value:({})", words);
  return fmt::format(":value:_alternative \"words\\:value\\:({})\" \"files\\:file\\:{}\"", words,
                     files);
}

void add_leaf(const CommandSpec& command, const std::string& function, std::string& script) {
  const bool is_bare = command.flags.empty() && !command.word.taken;  // of `help`
  script += function + "() {\n  " + (is_bare ? ":" : "_arguments");
  for (const FlagSpec& flag : command.flags) {
    for (const std::string& name : flag.names) {
      script +=
          fmt::format(" \\\n    '{}[{}]{}'", name, zsh_quoted(flag.brief), action(flag.value));
    }
  }
  if (command.word.taken) script += fmt::format(" \\\n    '*{}'", action(command.word));
  script += "\n}\n\n";
}

void add_command(const CommandSpec& command, const std::string& function, std::string& script);

/// A command that only has commands: it offers them, and passes on what comes behind.
void add_group(const CommandSpec& command, const std::string& function, std::string& script) {
  for (const CommandSpec& sub : command.commands) {
    add_command(sub, function + "_" + sub.name, script);
  }
  script += function + "() {\n  if ((CURRENT == 2)); then\n    local -a offers=(";
  for (const CommandSpec& sub : command.commands) {
    script += fmt::format("\n      '{}:{}'", sub.name, zsh_quoted(sub.brief));
  }
  for (const FlagSpec& flag : command.flags) {
    script += fmt::format("\n      '{}:{}'", flag.names.front(), zsh_quoted(flag.brief));
  }
  script += ")\n    _describe command offers\n    return\n  fi\n  shift words\n  ((CURRENT--))\n";
  script += "  case $words[1] in\n";
  for (const CommandSpec& sub : command.commands) {
    script += fmt::format("    {0}) {1}_{0} ;;\n", sub.name, function);
  }
  script += "  esac\n}\n\n";
}

void add_command(const CommandSpec& command, const std::string& function, std::string& script) {
  if (command.commands.empty()) {
    add_leaf(command, function, script);
  } else {
    add_group(command, function, script);
  }
}

}  // namespace

std::string zsh_completion(const CommandSpec& program) {
  std::string script = fmt::format(
      "#compdef {0}\n# Completion of {0} for zsh. Made by: {0} completion zsh\n\n", program.name);
  const std::string function = "_" + program.name;
  add_command(program, function, script);
  // As a file in $fpath it is the function's body; read by `source` it registers itself.
  script += fmt::format(
      "if [[ $funcstack[1] == {0} ]]; then\n  {0} \"$@\"\nelse\n  compdef {0} {1}\nfi\n", function,
      program.name);
  return script;
}

}  // namespace ringlet::app
