
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <sstream>

#include "app/cli/help.h"
#include "app/cli/usage.h"
#include "train/recipe/version.h"

namespace ringlet::app {

namespace {

constexpr const char* kExitStatus = R"(.SH EXIT STATUS
.TP
0
done
.TP
1
failed; one line on the standard error says what, where and what to do
.TP
2
the command line, a variable or a configuration file is wrong; nothing was begun
.TP
3
done, but what was printed could not be written
.TP
4
done, and refused: under \-\-strict other work disturbed what was measured, or two files are unlike; a row is worse than
\-\-fail\-over allows
.TP
5
a training whose loss, gradient or weights are no numbers any more
.TP
128 + n
signal n stopped it; a run has finished its step and saved its state. 141: the reader of its output went away
)";

/// `text` as it stands: no escapes, no hyphens instead of minus signs.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

/// Lines of text; none of them is taken for a request, as those are that begin with a dot.
std::string roff_lines(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('.') || line.starts_with('\'')) out += "\\&";
    out += roff(line) + "\n";
  }
  return out;
}

/// What must not be wrapped.
std::string as_rows(const std::string& text) { return ".PP\n.nf\n" + roff_lines(text) + ".fi\n"; }

std::string entry(const std::string& tag, const std::string& text) {
  return ".TP\n" + tag + "\n" + roff_lines(text);
}

std::string in_bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }
std::string in_italics(const std::string& text) {
  return text.empty() ? "" : "\\fI" + roff(text) + "\\fR";
}

std::string examples_for_man(const CLI::App& command) {
  std::string text;
  for (const Example& example : help_page_of(full_name(command)).examples) {
    text += entry(in_bold(example.line), example.shows);
  }
  return text;
}

std::string flag_for_man(const CLI::Option& option) {
  const std::string value = in_italics(value_name(option));
  if (option.get_positional()) return entry(value, flag_text(option));
  return entry(in_bold(flag_names(option)) + (value.empty() ? "" : " " + value), flag_text(option));
}

/// The flags of a group; without those that every command has to ask for help.
std::string flags_for_man(const CLI::App& command, const std::string& group) {
  std::string text;
  for (const CLI::Option* option : command.get_options()) {
    const bool asks = command.get_parent() != nullptr &&
                      (option == command.get_help_ptr() || option == command.get_help_all_ptr());
    if (option->get_group() == group && !asks) text += flag_for_man(*option);
  }
  return text;
}

std::string footer_for_man(const CLI::App& command) {
  const std::string footer = command.get_footer();
  const CLI::App* parent = command.get_parent();
  const bool inherited = parent != nullptr && parent->get_footer() == footer;
  if (footer.empty() || inherited) return "";
  return footer.find("\n ") == std::string::npos ? ".PP\n" + roff_lines(footer) : as_rows(footer);
}

std::string command_for_man(const CLI::App& command) {
  std::string text =
      fmt::format(".SS {}\n{}.\n", roff(full_name(command)), roff(command.get_description()));
  text += examples_for_man(command);
  for (const std::string& group : command.get_groups()) {
    const std::string flags = flags_for_man(command, group);
    if (!flags.empty()) text += fmt::format(".PP\n.I {}\n{}", roff(group), flags);
  }
  text += footer_for_man(command);
  for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; })) {
    text += command_for_man(*sub);
  }
  return text;
}

}  // namespace

std::string man_page(const CLI::App& program) {
  std::string text = fmt::format(
      ".\\\" Made by: ringlet help --man\n"
      ".TH RINGLET 1 \"\" \"ringlet {}\" \"User Commands\"\n"
      ".SH NAME\nringlet \\- train neural networks on several replicas, and sum their gradients\n"
      ".SH SYNOPSIS\n.B ringlet\n.I COMMAND\n.RI [ FLAGS ]\n"
      ".SH DESCRIPTION\n{}",
      train::kVersion, roff_lines(program.get_description()));
  text += footer_for_man(program);
  text += ".SH EXAMPLES\n" + examples_for_man(program);
  text += ".SH OPTIONS\n" + flags_for_man(program, "Options") + ".SH COMMANDS\n";
  for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) {
    text += command_for_man(*command);
  }
  return text + kExitStatus;
}

}  // namespace ringlet::app
