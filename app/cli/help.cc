#include "app/cli/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "app/cli/settings.h"
#include "app/cli/usage.h"
#include "train/telemetry/progress.h"

namespace ringlet::app {

namespace {

constexpr std::size_t kIndent = 2;
constexpr std::size_t kLeastRight = 40;  // columns for descriptions beside what they describe

/// Where descriptions start that would best start at `wished`: below what they describe where the
/// terminal is narrow.
std::size_t column_for(std::size_t wished) {
  return wished + kLeastRight <= help_width() ? wished : 3 * kIndent;
}

std::size_t flags_column() { return column_for(34); }
std::size_t commands_column() { return column_for(14); }

/// The words of `text`; what stands in brackets is one word, as far as `room` goes.
std::vector<std::string> words_of(const std::string& text, std::size_t room) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  bool open = false;
  for (std::string word; stream >> word;) {
    if (open && words.back().size() + 1 + word.size() <= room) {
      words.back() += " " + word;
    } else {
      words.push_back(word);
    }
    open = words.back().front() == '[' && words.back().back() != ']';
  }
  return words;
}

/// `left`, broken behind a | where it is longer than a line: naive|tree|\n|ring.
std::string broken_at_bars(std::string left) {
  for (std::size_t begin = 0; left.size() - begin > help_width();) {
    const std::size_t bar = left.rfind('|', begin + help_width() - 1);
    if (bar == std::string::npos || bar <= begin + 3 * kIndent) break;
    left.insert(bar + 1, "\n" + std::string(3 * kIndent, ' '));
    begin = bar + 2;
  }
  return left;
}

std::string examples_of(const HelpPage& page) {
  if (page.examples.empty()) return "";
  std::size_t left = 0, right = 0;
  for (const Example& example : page.examples) {
    left = std::max(left, std::string_view(example.line).size());
    right = std::max(right, std::string_view(example.shows).size());
  }
  const std::size_t beside = left + 3 * kIndent;
  const std::size_t column = beside + right <= help_width() ? beside : 3 * kIndent;
  std::string text = "Examples:\n";
  for (const Example& example : page.examples) {
    text += help_row(example.line, example.shows, column);
  }
  return text + "\n";
}

}  // namespace

std::size_t help_width() {
  constexpr int kNarrowest = 40, kWidest = 100;
  const int columns = train::terminal_columns(stdout);
  return static_cast<std::size_t>(columns == 0 ? kWidest
                                               : std::clamp(columns, kNarrowest, kWidest));
}

std::size_t footer_width() {
  constexpr std::size_t kOfManualPages = 72;
  return std::min(kOfManualPages, help_width());
}

std::string flag_names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string value_name(const CLI::Option& option) {
  if (option.get_type_size() == 0) return "";
  const std::string type = option.get_type_name();
  static const std::map<std::string, std::string> kWords{
      {"INT", "N"}, {"UINT", "N"}, {"FLOAT", "X"}};
  const auto word = kWords.find(type.substr(0, type.find(':')));  // "INT:POSITIVE"
  return word == kWords.end() ? type : word->second;
}

std::string flag_text(const CLI::Option& option) {
  std::string text = option.get_description();
  if (option.get_type_size() > 0 && !option.get_default_str().empty()) {
    text += " [" + option.get_default_str() + "]";
  }
  return text + (option.get_required() ? " (required)" : "");
}

std::string help_row(const std::string& left, const std::string& right, std::size_t column,
                     std::size_t width) {
  std::string text = broken_at_bars(std::string(kIndent, ' ') + left);
  std::size_t at = text.size();
  const auto new_line = [&] {
    text += "\n";
    at = 0;
  };
  if (at + 2 > column || text.find('\n') != std::string::npos) new_line();
  for (const std::string& word : words_of(right, width - column)) {
    if (at >= column && at + 1 + word.size() > width) new_line();
    const std::size_t blanks = at < column ? column - at : 1;
    text.append(blanks, ' ').append(word);
    at += blanks + word.size();
  }
  return text + "\n";
}

std::string help_paragraph(const std::string& text) {
  std::string lines;
  std::size_t at = 0;
  std::istringstream words(text);
  for (std::string word; words >> word; at += word.size()) {
    if (at > 0) {
      const bool fits = at + 1 + word.size() <= help_width();
      lines += fits ? ' ' : '\n';
      at = fits ? at + 1 : 0;
    }
    lines += word;
  }
  return lines + "\n";
}

std::string help_of(const CLI::App& command) {
  return command.get_formatter()->make_help(&command, full_name(command),
                                            CLI::AppFormatMode::Normal);
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return help_paragraph(app->get_description()) + "\n" + examples_of(help_page_of(full_name(*app)));
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  const bool has_commands = !app->get_subcommands([](const CLI::App*) { return true; }).empty();
  std::string words =
      has_commands ? "COMMAND [FLAGS]   (COMMAND --help lists its flags)" : "[FLAGS]";
  for (const CLI::Option* option : app->get_options()) {
    if (option->get_positional()) words += " " + option->get_type_name();
  }
  return help_paragraph(fmt::format("usage: {} {}", name, words)) + "\n";
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode mode) const {
  const std::vector<std::string>& most_used = help_page_of(full_name(*app)).flags;
  if (mode != CLI::AppFormatMode::Normal || most_used.empty()) {
    return Formatter::make_help(app, name, mode);
  }
  const auto all = app->get_options(
      [](const CLI::Option* option) { return option->nonpositional() && can_be_set(*option); });
  std::string flags = fmt::format("Used most (--help-all lists all {}):\n", all.size());
  for (const std::string& flag : most_used) flags += make_option(app->get_option(flag), false);
  flags +=
      "\n" + make_option(app->get_help_ptr(), false) + make_option(app->get_help_all_ptr(), false);
  return make_description(app) + make_usage(app, name) + make_positionals(app) + flags + "\n" +
         make_footer(app);
}

std::string HelpFormatter::make_expanded(const CLI::App* sub) const {
  return full_name(*sub) + ": " + help_paragraph(sub->get_description()) + make_positionals(sub) +
         make_groups(sub, CLI::AppFormatMode::Sub) + make_subcommands(sub, CLI::AppFormatMode::All);
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  const std::string footer = app->get_footer();
  if (footer.empty()) return "";
  if (footer.find("\n ") == std::string::npos) return help_paragraph(footer);
  std::string text;
  std::istringstream lines(footer);  // some of which are rows
  for (std::string line; std::getline(lines, line);) {
    text += line.starts_with(' ') ? line + "\n" : help_paragraph(line);
  }
  return text;
}

std::string HelpFormatter::make_group(std::string group, bool is_positional,
                                      std::vector<const CLI::Option*> options) const {
  std::string text = (is_positional ? "Arguments" : group) + ":\n";
  for (const CLI::Option* option : options) text += make_option(option, is_positional);
  return is_positional ? text + "\n" : text;
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  const std::string value = value_name(*option);
  return help_row(is_positional ? value : flag_names(*option) + (value.empty() ? "" : " " + value),
                  flag_text(*option), flags_column());
}

std::string HelpFormatter::make_subcommand(const CLI::App* sub) const {
  return help_row(sub->get_name(), sub->get_description(), commands_column());
}

}  // namespace ringlet::app
