#include <fmt/format.h>

#include "app/completion/completion.h"

namespace ringlet::app {

namespace {

/// Calls visit(command, path) for the program and all of its commands; a path is "/bench/train".
template <class Visit>
void for_each_command(const CommandSpec& command, const std::string& path, const Visit& visit) {
  visit(command, path);
  for (const CommandSpec& sub : command.commands) {
    for_each_command(sub, path + "/" + sub.name, visit);
  }
}

/// `words='ring naive' files=f`
std::string offer(const ValueSpec& value) {
  const char* files = value.files == ValueSpec::Files::files     ? " files=f"
                      : value.files == ValueSpec::Files::folders ? " files=d"
                                                                 : "";
  return fmt::format("words='{}'{}", fmt::join(value.choices, " "), files);
}

/// The cases that find which commands stand before the cursor.
std::string path_cases(const CommandSpec& program) {
  std::string cases;
  for_each_command(program, "", [&](const CommandSpec&, const std::string& path) {
    if (!path.empty()) cases += fmt::format("      {0}) path={0} ;;\n", path);
  });
  return cases;
}

/// The cases that offer the values of each flag that takes one.
std::string value_cases(const CommandSpec& program) {
  std::string cases;
  for_each_command(program, "", [&](const CommandSpec& command, const std::string& path) {
    for (const FlagSpec& flag : command.flags) {
      if (!flag.value.taken) continue;
      for (const std::string& name : flag.names) {
        cases += fmt::format("    {}:{}) {} ;;\n", path, name, offer(flag.value));
      }
    }
  });
  return cases;
}

/// The cases that offer the other words of each command.
std::string word_cases(const CommandSpec& program) {
  std::string cases;
  for_each_command(program, "", [&](const CommandSpec& command, const std::string& path) {
    ValueSpec all = command.word;
    for (const CommandSpec& sub : command.commands) all.choices.push_back(sub.name);
    for (const FlagSpec& flag : command.flags) {
      all.choices.insert(all.choices.end(), flag.names.begin(), flag.names.end());
    }
    cases += fmt::format("    {}:*) {} ;;\n", path, offer(all));
  });
  return cases;
}

}  // namespace

std::string bash_completion(const CommandSpec& program) {
  return fmt::format(R"(# Completion of {0} for bash. Made by: {0} completion bash
_{0}() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}} path='' words='' files='' i
  if [[ $cur == '=' ]]; then cur=''; elif [[ $prev == '=' ]]; then prev=${{COMP_WORDS[COMP_CWORD - 2]}}; fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case $path/${{COMP_WORDS[i]}} in
{1}    esac
  done
  case $path:$prev in
{2}{3}  esac
  local IFS=$'\n'
  COMPREPLY=($(IFS=' '; compgen -W "$words" -- "$cur"))
  if [[ -n $files && $cur != -* ]]; then
    compopt -o filenames 2>/dev/null
    COMPREPLY+=($(compgen -"$files" -- "$cur"))
  fi
}}
complete -F _{0} {0}
)",
                     program.name, path_cases(program), value_cases(program), word_cases(program));
}

}  // namespace ringlet::app
