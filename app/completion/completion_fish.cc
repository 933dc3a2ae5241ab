#include <fmt/format.h>

#include "app/completion/completion.h"

namespace ringlet::app {

namespace {

std::string in_quotes(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

/// " -x -a 'ring naive'": what the value may be.
std::string value(const ValueSpec& value) {
  if (!value.taken) return "";
  std::string words = fmt::format("{}", fmt::join(value.choices, " "));
  if (value.files == ValueSpec::Files::files) {
    return words.empty() ? " -r -F" : " -r -F -a " + in_quotes(words);
  }
  if (value.files == ValueSpec::Files::folders) {
    words += fmt::format("{}(__fish_complete_directories)", words.empty() ? "" : " ");
  }
  return words.empty() ? " -x" : " -x -a " + in_quotes(words);
}

/// `path` holds the commands before this one, a blank before each.
void add_command(const CommandSpec& command, const std::string& program, const std::string& path,
                 std::string& script) {
  const std::string start = fmt::format("complete -c {0} -n '__{0}_at{1}'", program, path);
  for (const FlagSpec& flag : command.flags) {
    script += start;
    for (const std::string& name : flag.names) {
      script += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    script += value(flag.value) + " -d " + in_quotes(flag.brief) + "\n";
  }
  if (command.word.taken) script += start + value(command.word) + "\n";
  for (const CommandSpec& sub : command.commands) {
    script += fmt::format("complete -c {0} -n '__{0}_just{1}' -a {2} -d {3}\n", program, path,
                          sub.name, in_quotes(sub.brief));
    add_command(sub, program, path + " " + sub.name, script);
  }
}

}  // namespace

std::string fish_completion(const CommandSpec& program) {
  std::string script = fmt::format(R"(# Completion of {0} for fish. Made by: {0} completion fish
# Whether the commands before the cursor begin with these.
function __{0}_at
  set -l commands (string match -v -- '-*' (commandline -opc))
  set -e commands[1]
  set -l depth (count $argv)
  # Behind the commands stand the values of flags.
  test (count $commands) -ge $depth; or return 1
  for i in (seq $depth)
    test $commands[$i] = $argv[$i]; or return 1
  end
  test $depth -gt 0; or test (count $commands) -eq 0
end
# Whether they are just these.
function __{0}_just
  set -l words (string match -v -- '-*' (commandline -opc))
  __{0}_at $argv; and test (count $words) -eq (math (count $argv) + 1)
end
complete -c {0} -f
)",
                                   program.name);
  add_command(program, program.name, "", script);
  return script;
}

}  // namespace ringlet::app
