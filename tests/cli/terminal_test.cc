// On a terminal a line renews itself; the table's rows stay.
#include <csignal>

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
