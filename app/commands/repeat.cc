#include "app/commands/repeat.h"

#include <fmt/format.h>

#include <set>

#include "app/cli/flags.h"
#include "app/cli/settings.h"
#include "base/one_line.h"

namespace ringlet::app {

namespace {

/// $'..': the quotes in which bash, zsh and ksh read the escapes that a terminal can be shown.
std::string quoted_escapes(const std::string& word) {
  std::string text;
  for (const char c : word) text.append(c == '\'' || c == '\\' ? "\\" : "").append(1, c);
  return "$'" + on_one_line(text, std::string::npos) + "'";
}

/// The word quoted for a shell.
std::string quoted(const std::string& word) {
  const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=/.,:@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  if (on_one_line(word, word.size()) != word) return quoted_escapes(word);
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

bool is_repeated(const CLI::Option& option) {
  // The run keeps these, or they were for its beginning. The first part of the run has written its
  // --trace, which nothing replaces unasked.
  static const std::set<std::string> kOnce{"--model",
                                           "--data",
                                           "--data-dir",
                                           "--synthetic-train",
                                           "--synthetic-test",
                                           "--allow-empty-classes",
                                           "--init",
                                           "--replace-head",
                                           "--out",
                                           "--trace",
                                           "--trace-spans",
                                           "--resume",
                                           "--force",
                                           "--config",
                                           "--print-config"};
  return option.count() > 0 && option.get_group() != kRecipeGroup &&
         kOnce.count(option.get_name()) == 0;
}

/// " --tf32", " --threads 2"; nothing for a switch that a configuration set to false.
std::string as_given(const CLI::Option& option) {
  const std::string value = fmt::format("{}", fmt::join(option.results(), ","));
  if (is_switch(option)) return value == "false" ? "" : " " + option.get_name();
  return " " + option.get_name() + (value.empty() ? "" : " " + quoted(value));
}

}  // namespace

std::string command_to_resume(const CLI::App& command, const std::filesystem::path& folder) {
  std::string text = "ringlet " + command.get_name();
  for (const CLI::Option* option : command.get_options()) {
    if (is_repeated(*option)) text += as_given(*option);
  }
  return text + " --resume " + quoted(folder.string());
}

}  // namespace ringlet::app
