// What --help prints: an option a row, wrapped to 100 columns. The default stands in brackets at
// the end:
//
//   --sync naive|ring|doubling    how gradients are summed [ring]
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace ringlet::app {

/// `left` and, from `column` on and wrapped there, `right`.
std::string help_row(const std::string& left, const std::string& right, std::size_t column);

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* sub) const override;
};

}  // namespace ringlet::app
