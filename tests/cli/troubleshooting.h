// docs/troubleshooting.md: the messages that it explains. Each is a heading, "### `MESSAGE`", in
// which <n> stands for a number, <word> for something without blanks, <command> for the program's
// command so far, <text> for anything.
#pragma once

#include <string>
#include <vector>

namespace ringlet::testing {

struct ExplainedMessage {
  std::string section;  ///< "Weights"
  std::string text;
};

std::vector<ExplainedMessage> explained_messages();

/// Whether the tests provoke the section's messages with the program. Those of other sections need
/// a GPU, another build or bad luck, so their words are looked for in the sources instead.
inline bool is_provoked(const std::string& section) {
  return section != "GPUs" && section != "Seldom seen" && section != "Several machines";
}

}  // namespace ringlet::testing
