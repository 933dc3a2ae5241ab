#include "tests/cli/troubleshooting.h"

#include <fstream>

#include "tests/support/testdata.h"

namespace ringlet::testing {

std::vector<ExplainedMessage> explained_messages() {
  std::vector<ExplainedMessage> messages;
  std::ifstream page(checkout("docs/troubleshooting.md"));
  std::string section;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) section = line.substr(3);
    if (line.starts_with("### `") && line.ends_with("`")) {
      messages.push_back({section, line.substr(5, line.size() - 6)});
    }
  }
  return messages;
}

}  // namespace ringlet::testing
