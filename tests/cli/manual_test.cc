// docs/command-line.md and the manual page against the program: each section of a command names
// every flag that the command has, and none that it has not.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>

#include "tests/cli/program.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"

namespace ringlet::testing {
namespace {

using Names = std::set<std::string>;

Names all_matches(const std::string& text, const std::regex& pattern) {
  Names names;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) {
    names.insert((*match)[1]);
  }
  return names;
}

/// The flags that a row of --help-all begins with, but those that ask for help.
Names flags_of(const std::string& help) {
  static const std::regex kRow("\n  ((?:-[a-z], )?--[a-z0-9-]+(?:, --[a-z0-9-]+)*)");
  static const std::regex kFlag("(--[a-z0-9-]+)");
  Names flags;
  for (const std::string& row : all_matches(help, kRow)) flags.merge(all_matches(row, kFlag));
  flags.erase("--help");
  flags.erase("--help-all");
  return flags;
}

/// The part of the page under "## TITLE", down to the next one; empty where there is none.
std::string section_of(const std::string& page, const std::string& title) {
  const auto begin = page.find("\n## " + title + "\n");
  if (begin == std::string::npos) return "";
  return page.substr(begin, page.find("\n## ", begin + 1) - begin);
}

/// The part of `section` under "### Recipe" for the link "recipe".
std::string part_of(const std::string& section, std::string link) {
  link.front() = static_cast<char>(std::toupper(link.front()));
  const auto begin = section.find("\n### " + link + "\n");
  if (begin == std::string::npos) return "";
  return section.substr(begin, section.find("\n### ", begin + 1) - begin);
}

/// The flags of a part of the page that is written from the tables of options.
Names in_table_of_options(const std::string& title) {
  static const std::regex kRow("\n\\| `[a-z0-9_]+` \\| `(--[a-z0-9-]+)` \\|");
  const std::string section = section_of(read_file(checkout("docs/options.md")), title);
  EXPECT_NE(section, "") << "docs/options.md has no section '" << title << "'";
  return all_matches(section, kRow);
}

/// The flags in the first cells of a section's tables; a cell may be "all of [Recipe](#recipe)", a
/// part of train's section, or "all of [What a run keeps](options.md)", a section of that page.
Names documented(const std::string& page, const std::string& section) {
  static const std::regex kCell("\n\\| (`--[^|]*) \\|");
  static const std::regex kPart("\n\\| all of \\[[^\\]]*\\]\\(#([a-z]+)\\) \\|");
  static const std::regex kTable("\n\\| all of \\[([^\\]]*)\\]\\(options\\.md\\) \\|");
  static const std::regex kFlag("`(--[a-z0-9-]+)`");
  Names flags;
  for (const std::string& cell : all_matches(section, kCell)) flags.merge(all_matches(cell, kFlag));
  for (const std::string& title : all_matches(section, kTable)) {
    flags.merge(in_table_of_options(title));
  }
  for (const std::string& link : all_matches(section, kPart)) {
    const std::string part = part_of(section_of(page, "ringlet train"), link);
    EXPECT_NE(part, "") << "ringlet train has no part #" << link;
    flags.merge(documented("", part));
  }
  return flags;
}

/// The flags that stand in bold in a section of the manual page.
Names in_man_page(const std::string& page, const std::string& title) {
  const auto begin = page.find("\n.SS " + title + "\n");
  if (begin == std::string::npos) return {};
  const auto end = std::min(page.find("\n.SS ", begin + 1), page.find("\n.SH ", begin + 1));
  static const std::regex kTag("\n\\.TP\n\\\\fB([^\n ]*(?:, [^\n ]*)*)\\\\fR");
  static const std::regex kFlag("(--[a-z0-9-]+)");
  Names flags;
  const std::string section = page.substr(begin, end - begin);
  for (const std::string& tag : all_matches(section, kTag)) flags.merge(all_matches(tag, kFlag));
  flags.erase("--help");
  flags.erase("--help-all");
  return flags;
}

/// Without the escapes of minus signs.
std::string man_page() {
  static const std::regex kMinus("\\\\-");
  return std::regex_replace(ringlet({"help", "--man"}).out, kMinus, "-");
}

TEST(Manual, NamesEachFlagOfACommandAndNoOther) {
  const std::string page = read_file(checkout("docs/command-line.md")), printed = man_page();
  for (const Arguments& command : all_commands()) {
    const Outcome help = ringlet(command + Arguments{"--help-all"});
    ASSERT_TRUE(succeeds(help));
    if (help.out.find("\nCommands:\n") != std::string::npos) continue;  // it has sections below
    const std::string title = fmt::format("ringlet {}", fmt::join(command, " "));
    SCOPED_TRACE(title);
    const std::string section = section_of(page, title);
    EXPECT_NE(section, "") << "docs/command-line.md has no section on it";
    EXPECT_EQ(documented(page, section), flags_of(help.out))
        << "each flag needs a row in docs/command-line.md, in the section of its command";
    EXPECT_EQ(in_man_page(printed, title), flags_of(help.out));
  }
}

TEST(ManPage, GivesTheExitCodesOfTheManual) {
  const std::string table = section_of(read_file(checkout("docs/command-line.md")), "Exit codes");
  const std::string page = man_page();
  const std::string section = page.substr(page.find("\n.SH EXIT STATUS\n"));
  static const std::regex kRow("\n\\| ([0-9][^|]*) \\|"), kTag("\n\\.TP\n([^\n]+)");
  EXPECT_GE(all_matches(table, kRow).size(), 4u);
  EXPECT_EQ(all_matches(table, kRow), all_matches(section, kTag));
}

TEST(ManPage, IsSetWithoutAWarning) {
  if (Program(ShellLine{"command -v groff >/dev/null"}).wait().code != 0) {
    GTEST_SKIP() << "there is no groff";
  }
  const Outcome outcome = Program(ShellLine{built("bin/ringlet") +
                                            " help --man | groff -man -ww -Tascii -P-cbu -rLL=80n"})
                              .wait();
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_TRUE(holds(outcome.out, {"EXAMPLES", "EXIT STATUS", "ringlet bench all-reduce"}));
}

}  // namespace
}  // namespace ringlet::testing
