// What --help prints: examples, then an option a row, wrapped to the terminal's width and to 100
// columns. The default stands in brackets at the end:
//
//   --sync naive|ring|doubling    how gradients are summed [ring]
//
// Of a command with many flags --help shows those that are used most (help_pages.h), and --help-all
// all of them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace ringlet::app {

/// Columns that help may take: those of the terminal, 100 at most.
std::size_t help_width();

/// Columns for rows in a footer, which the manual page shows as they are.
std::size_t footer_width();

/// `left` and, from `column` on and wrapped there, `right`.
std::string help_row(const std::string& left, const std::string& right, std::size_t column,
                     std::size_t width = help_width());
/// The words of `text`, wrapped.
std::string help_paragraph(const std::string& text);

/// "-h, --help"
std::string flag_names(const CLI::Option& option);
/// "N": what stands for the value; empty for a switch.
std::string value_name(const CLI::Option& option);
/// What it does, and its default.
std::string flag_text(const CLI::Option& option);

/// What --help prints of `command`.
std::string help_of(const CLI::App& command);

/// The manual page, ringlet(1), from the commands and flags of `program`, in the macros of man(7):
/// ringlet help --man | man -l -
std::string man_page(const CLI::App& program);

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* sub) const override;
  std::string make_expanded(const CLI::App* sub) const override;
  std::string make_footer(const CLI::App* app) const override;
};

struct Example {
  const char* line;
  const char* shows;
};

struct HelpPage {
  const char* command = "";  ///< "ringlet bench train"
  std::vector<Example> examples{};
  std::vector<std::string> flags{};  ///< with their dashes; empty: --help lists all there are
};

/// The page of a command, or an empty one.
const HelpPage& help_page_of(const std::string& command);

}  // namespace ringlet::app
