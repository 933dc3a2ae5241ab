// docs/options.md says what the tables of options say. With RINGLET_WRITE_PAGES=1 in the
// environment this writes the page.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/support/files.h"
#include "tests/support/testdata.h"
#include "train/recipe/recipe_options.h"
#include "train/setup/run_options.h"

namespace ringlet::train {
namespace {

constexpr const char* kHead =
    "# The options of a training\n\n"
    "The tables of options, a row each: the key in states and in the library, the flag, what it "
    "takes, its value in a `Recipe`\nwhere nobody says another (models have values of their own: "
    "`ringlet train --help-all`), and what it is.\n[The command line](command-line.md) says when "
    "one wants it. This page is written from the tables in `train/recipe/` and\n`train/setup/`:"
    "\n\n"
    "    RINGLET_WRITE_PAGES=1 build/release/tests/train/train_tests "
    "--gtest_filter='OptionsPage.*'\n\n"
    "The variable of the environment is `RINGLET_` and the flag in capitals: `RINGLET_LR`, "
    "`RINGLET_NO_SHUFFLE`. The key in a\nconfiguration is the flag without dashes before it.\n";

constexpr const char* kColumns =
    "| key | flag | takes | else | what it is |\n| --- | --- | --- | --- | --- |\n";

/// Who has the option, where not every run does.
std::string owner_of(const OptionRow& row) {
  if (row.of_photographs) return "; of photographs";
  if (row.task != nullptr) return fmt::format("; of {}", row.task);
  if (row.only.key == nullptr) return "";
  return fmt::format("; with `{}` {}", row.only.key, fmt::join(row.only.values, " or "));
}

template <class S>
std::string table_of(const OptionTable<S>& table) {
  std::string text = kColumns;
  for (const Option<S>& row : table.rows()) {
    const std::string flag = row.has_flag ? '`' + row.flag_name() + '`' : "the program's own";
    const std::string standard =
        row.default_in_words != nullptr ? row.default_in_words : text_of(row.get(S()));
    text += fmt::format("| `{}` | {} | {} | {} | {}{} |\n", row.key, flag,
                        row.is_switch() ? "" : row.wanted(), standard,
                        row.help.empty() ? "see the command line" : row.help, owner_of(row));
  }
  return text;
}

TEST(OptionsPage, IsTheTables) {
  const std::string page = std::string(kHead) + "\n## What a run keeps\n\n" +
                           table_of(recipe_options()) + "\n## Where and how a run goes\n\n" +
                           "No state has these: a run that goes on may have others.\n\n" +
                           table_of(run_options());
  const std::string path = testing::checkout("docs/options.md");
  if (std::getenv("RINGLET_WRITE_PAGES") != nullptr) testing::write_file(path, page);
  EXPECT_EQ(testing::read_file(path), page)
      << "an option has changed; write the page anew, as its head says";
}

}  // namespace
}  // namespace ringlet::train
