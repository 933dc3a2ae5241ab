// On a terminal a line renews itself; the table's rows stay.
#include <algorithm>
#include <csignal>
#include <sstream>

#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

/// Long enough that the line, renewed ten times a second, is seen.
Arguments watched_train(const Arguments& more = {}) {
  return quick_train(
      Arguments{"--synthetic-train", "2000", "--batch-size", "8", "--epochs", "100000"} + more);
}

TEST(Terminal, ShowsALineThatRenewsItself) {
  Program program(watched_train(), {.terminal = true, .environment = {{"TERM", "xterm"}}});
  ASSERT_TRUE(program.wait_for(" left"));
  ASSERT_TRUE(program.wait_for("\r\x1b[2Kepoch "));
  program.send(SIGTERM);
  const std::string out = program.wait().out;
  const std::string line = out.substr(out.find("\r\x1b[2Kepoch "));
  EXPECT_TRUE(
      holds(line.substr(0, line.find(" left")), {"/100000  step ", "/250  loss ", " samples/s  "}));
  const auto stopped = out.find("stopped after step");
  ASSERT_NE(stopped, std::string::npos) << out;
  const std::string before = out.substr(0, stopped);
  EXPECT_TRUE(before.ends_with("\r\x1b[2K") || before.ends_with("\n")) << "a half line stays";
}

/// The lines of progress, each as it was renewed.
std::vector<std::string> renewed_lines(const std::string& out) {
  static const std::string kRenewal = "\r\x1b[2K";
  std::vector<std::string> lines;
  for (auto at = out.find(kRenewal); at != std::string::npos; at = out.find(kRenewal, at)) {
    at += kRenewal.size();
    const std::string line = out.substr(at, out.find_first_of("\r\n", at) - at);
    if (line.starts_with("epoch ")) lines.push_back(line);
  }
  return lines;
}

TEST(Terminal, IsNeverTooNarrowForTheLineAlsoWhenItShrinks) {
  constexpr std::size_t kNarrow = 40;
  const auto is_narrow = [](const std::string& line) { return line.size() < kNarrow; };
  Program program(watched_train(),
                  {.terminal = true, .columns = 100, .environment = {{"TERM", "xterm"}}});
  ASSERT_TRUE(program.wait_for(" left"));
  program.resize(kNarrow);
  ASSERT_TRUE(program.wait_until([&](const std::string& out) {
    const auto lines = renewed_lines(out);
    return lines.size() > 2 && is_narrow(lines[lines.size() - 3]);
  }));
  program.send(SIGTERM);
  const auto lines = renewed_lines(program.wait().out);
  EXPECT_FALSE(is_narrow(lines.front()));
  const auto narrow = std::find_if(lines.begin(), lines.end(), is_narrow);
  for (auto line = narrow; line != lines.end(); ++line) EXPECT_TRUE(is_narrow(*line)) << *line;
}

TEST(Terminal, HasRoomForTheTableAndTheSummaryHoweverNarrowItIs) {
  for (const int columns : {40, 80, 200}) {
    const ProgramOptions terminal{
        .terminal = true, .columns = columns, .environment = {{"TERM", "xterm"}}};
    const Outcome outcome = ringlet(quick_train({"--replicas", "2"}), terminal);
    EXPECT_EQ(outcome.code, 0);
    const std::string& out = outcome.out;
    const std::string until_rows = out.substr(0, out.find('\n', out.find("test accuracy")));
    EXPECT_TRUE(holds(until_rows, {"data ", "sync ", "epoch ", "test accuracy"}));
    std::istringstream lines(until_rows);
    for (std::string line; std::getline(lines, line);) {
      std::erase(line, '\r');
      EXPECT_LT(line.size(), static_cast<std::size_t>(columns)) << line;
    }
    EXPECT_EQ(out.find("in sync") == std::string::npos, columns < 80);
  }
}

TEST(Terminal, ShowsErrorsOnALineOfTheirOwn) {
  const TemporaryDirectory folder;
  Program program(watched_train({"--metrics", "/dev/full"}),
                  {.terminal = true, .environment = {{"TERM", "xterm"}}});
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(outcome.out.find("\nringlet: error: ") != std::string::npos ||
              outcome.out.find("\r\x1b[2Kringlet: error: ") != std::string::npos)
      << outcome.out;
}

TEST(Terminal, ThatCannotRenewGetsPlainLines) {
  Program program(quick_train(), {.terminal = true, .environment = {{"TERM", "dumb"}}});
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace ringlet::testing
