#include "train/cli/repeat.h"

#include <fmt/format.h>

#include <set>

#include "train/cli/flags.h"

namespace ringlet::train {

namespace {

/// As a shell takes it.
std::string quoted(const std::string& word) {
  const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=/.,:@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

bool is_repeated(const CLI::Option& option) {
  static const std::set<std::string> kOnce{"--model", "--data",   "--init",
                                           "--out",   "--resume", "--force"};
  return option.count() > 0 && option.get_group() != kRecipeGroup &&
         kOnce.count(option.get_name()) == 0;
}

}  // namespace

std::string command_to_resume(const CLI::App& command, const std::filesystem::path& folder) {
  std::string text = "ringlet " + command.get_name();
  for (const CLI::Option* option : command.get_options()) {
    if (!is_repeated(*option)) continue;
    text += " " + option->get_name();
    const std::string value = fmt::format("{}", fmt::join(option->results(), ","));
    if (!value.empty()) text += " " + quoted(value);
  }
  return text + " --resume " + quoted(folder.string());
}

}  // namespace ringlet::train
