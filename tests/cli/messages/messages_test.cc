// The messages that a user can get, provoked with the program itself, and docs/troubleshooting.md,
// which explains them. Each provocation has to end in exactly one message of the page, word for
// word. Each message has to be provoked, but for those that message_sources_test.cc looks for.
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "tests/cli/messages/provocations.h"
#include "tests/cli/troubleshooting.h"

namespace ringlet::testing {
namespace {

/// The regular expression that a message is, placeholders and all.
std::regex pattern_of(const std::string& message) {
  static const std::regex kSpecial(R"([.^$|()\[\]{}*+?\\])");
  std::string text = std::regex_replace(message, kSpecial, R"(\$&)");
  for (const auto& [placeholder, meaning] :
       std::map<std::string, std::string>{{"<n>", R"(-?[0-9][0-9.]*(?:e[+-]?[0-9]+)?)"},
                                          {"<word>", "[^ ']+"},
                                          {"<command>", "ringlet(?: [a-z]+)*"},
                                          {"<text>", ".+"}}) {
    for (auto at = text.find(placeholder); at != std::string::npos; at = text.find(placeholder)) {
      text.replace(at, placeholder.size(), meaning);
    }
  }
  return std::regex(text);
}

/// Names the package without which this build cannot be asked; empty where it is there.
std::string lacking(const std::string& err) {
  for (const char* package : {"libtomlplusplus-dev", "libgloo-dev", "libwebp7"}) {
    if (err.find(package) != std::string::npos) return package;
  }
  return "";
}

std::vector<Provocation> provocations() {
  std::vector<Provocation> all = provocations_by_flags();
  for (const auto& more :
       {provocations_by_inputs(), provocations_by_torch(), provocations_by_runs()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

TEST(Messages, AreThoseThatTroubleshootingExplains) {
  const std::vector<ExplainedMessage> messages = explained_messages();
  ASSERT_GT(messages.size(), 50u);
  std::vector<std::regex> patterns;
  for (const ExplainedMessage& explained : messages) {
    patterns.push_back(pattern_of(explained.text));
  }
  std::map<std::string, std::string> provoked;  // by message: the line
  std::string missing;                          // a package that this build does without
  for (const Provocation& provocation : provocations()) {
    const Stage stage;
    const Outcome outcome = provocation.provoke(stage);
    if (const std::string package = lacking(outcome.err); !package.empty()) {
      missing = package;
      continue;
    }
    EXPECT_TRUE(fails_with(provocation.code, outcome, {}));
    const std::string prefix = "ringlet: error: ";
    if (outcome.err.size() <= prefix.size()) continue;
    const std::string line =
        outcome.err.substr(prefix.size(), outcome.err.find('\n') - prefix.size());
    std::vector<std::string> fitting;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      if (std::regex_match(line, patterns[i])) fitting.push_back(messages[i].text);
    }
    ASSERT_LE(fitting.size(), 2u);
    if (fitting.empty()) ADD_FAILURE() << "docs/troubleshooting.md does not explain: " << line;
    if (fitting.size() == 2)
      ADD_FAILURE() << line << "\nfits " << fitting[0] << "\nand  " << fitting[1];
    if (!fitting.empty() && !provoked.emplace(fitting[0], line).second) {
      ADD_FAILURE() << "provoked twice: " << line;
    }
  }
  if (!missing.empty()) GTEST_SKIP() << "this build is without " << missing << "; the rest held";
  for (const auto& [section, message] : messages) {
    if (is_provoked(section)) {
      EXPECT_EQ(provoked.count(message), 1u) << "nothing provokes: " << message;
    }
  }
}

}  // namespace
}  // namespace ringlet::testing
