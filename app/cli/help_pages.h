// What --help begins with: examples of a command and, where it has many flags, those that are used
// most. --help-all lists the others.
#pragma once

#include <string>
#include <vector>

namespace ringlet::app {

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
