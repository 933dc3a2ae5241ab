// `ringlet report --follow`: a page that grows while the run goes on, until Ctrl-C.
#include <csignal>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include "tests/cli/browser.h"
#include "tests/cli/program.h"
#include "tests/support/files.h"
#include "tests/support/http_client.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;

class Follow : public ::testing::Test {
 protected:
  Follow() {
    EXPECT_TRUE(succeeds(ringlet(quick_train({"--epochs", "3", "--out", run()}))));
    whole_ = read_file(metrics());
    const auto end_of_first = whole_.find('\n', whole_.find(R"({"kind":"epoch")"));
    write_file(metrics(), whole_.substr(0, end_of_first + 1));
  }
  std::string run() const { return folder_ / "run"; }
  fs::path metrics() const { return folder_ / "run/metrics.jsonl"; }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      names.insert(entry.path().string());
    }
    return names;
  }
  /// The port that `program` tells of; 0: it tells of none.
  static int port_of(Program& program) {
    std::string out;
    if (!program.wait_until([&](const std::string& so_far) {
          out = so_far;
          return so_far.find("(Ctrl-C ends this)") != std::string::npos;
        })) {
      return 0;
    }
    const std::string kUrl = "http://127.0.0.1:";
    const auto at = out.find(kUrl);
    return at == std::string::npos ? 0 : std::stoi(out.substr(at + kUrl.size()));
  }
  /// Waits until `holds` does.
  template <class Holds>
  static bool soon(Holds holds) {
    for (int i = 0; i < 400; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }
  TemporaryDirectory folder_;
  std::string whole_;
};

TEST_F(Follow, ServesAPageThatGrowsUntilCtrlC) {
  const std::set<std::string> before = files();
  Program program({"report", run(), "--follow"}, {});
  const int port = port_of(program);
  ASSERT_GT(port, 0);
  const std::string page = body_of(get(port, "/")), stamp = body_of(get(port, "/stamp"));
  EXPECT_TRUE(holds(page, {"<h1>", "id=\"epoch-loss\"", "fetch('/stamp'", "id=\"followed\""}));
  EXPECT_EQ(page.find("id=\"confusion"), std::string::npos);
  EXPECT_EQ(body_of(get(port, "/stamp")), stamp) << "nothing has happened";
  write_file(metrics(), whole_);
  EXPECT_TRUE(soon([&] { return body_of(get(port, "/stamp")) != stamp; }));
  EXPECT_NE(body_of(get(port, "/")), page);
  program.send(SIGINT);
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(files(), before);
  EXPECT_FALSE(HttpClient(port).connected());
}

TEST_F(Follow, OrWritesAFileAnew) {
  const std::string file = folder_ / "page.html";
  Program program({"report", run(), "--follow", "--out", file}, {});
  ASSERT_TRUE(program.wait_for("(Ctrl-C ends this)"));
  const std::string page = read_file(file);
  EXPECT_TRUE(holds(page, {"location.reload()", "id=\"followed\""}));
  write_file(metrics(), whole_);
  EXPECT_TRUE(soon([&] { return read_file(file) != page; }));
  program.send(SIGTERM);
  EXPECT_EQ(program.wait().code, 0);
}

/// What is there in the middle of a write does not end it.
TEST_F(Follow, OutlastsFilesThatCannotBeRead) {
  Program program({"report", run(), "--follow"}, {});
  const int port = port_of(program);
  ASSERT_GT(port, 0);
  const std::string page = body_of(get(port, "/"));
  write_file(metrics(), "{\"kind\":\n{}\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  EXPECT_EQ(body_of(get(port, "/")), page);
  write_file(metrics(), whole_);
  EXPECT_TRUE(soon([&] { return body_of(get(port, "/")) != page; }));
  program.send(SIGINT);
  EXPECT_EQ(program.wait().code, 0);
}

/// A run that has ended by then changes nothing more, and its last page is wanted all the same.
TEST_F(Follow, TellsWhyAPageStaysAndMakesItOnceItCan) {
  const std::string file = folder_ / "page.html";
  Program program(ShellLine{"exec " + built("bin/ringlet") + " report " + run() +
                            " --follow --out " + file + " 2>&1"});
  ASSERT_TRUE(program.wait_for("(Ctrl-C ends this)"));
  const std::string page = read_file(file);
  fs::remove(file);
  fs::create_directory(file);
  write_file(metrics(), whole_);
  ASSERT_TRUE(program.wait_for("ringlet: warning: the page stays as it was: "));
  fs::remove(file);
  EXPECT_TRUE(soon([&] { return fs::is_regular_file(file) && read_file(file) != page; }));
  program.send(SIGINT);
  const std::string told = program.wait().out, warning = "the page stays as it was";
  EXPECT_EQ(told.find(warning), told.rfind(warning)) << told;
}

TEST_F(Follow, WaitsForARunThatIsJustStarting) {
  const fs::path young = folder_ / "young";
  fs::create_directory(young);
  Program program({"report", young.string(), "--follow"}, {});
  ASSERT_TRUE(program.wait_for("waiting for " + young.string() + ": it has no metrics.jsonl"));
  write_file(young / "metrics.jsonl", whole_.substr(0, 20));
  std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  write_file(young / "metrics.jsonl", whole_);
  ASSERT_TRUE(program.wait_for("http://127.0.0.1:"));
  program.send(SIGINT);
  EXPECT_EQ(program.wait().code, 0);
  Program given_up({"report", young.string() + "/..", "--follow"}, {});
  ASSERT_TRUE(given_up.wait_for("waiting for "));
  given_up.send(SIGINT);
  EXPECT_EQ(given_up.wait().code, 0);
}

TEST_F(Follow, RefusesWhatDoesNotGoTogether) {
  EXPECT_TRUE(fails_with(2, ringlet({"report", run(), "--port", "0"}), {"--port", "--follow"}));
  EXPECT_TRUE(fails_with(2, ringlet({"report", run(), "--follow", "--port", "99999"}), {"--port"}));
  EXPECT_TRUE(fails_with(
      2, ringlet({"report", run(), "--follow", "--port", "0", "--out", folder_ / "p.html"}),
      {"--port", "--out"}));
  EXPECT_TRUE(fails_with(1, ringlet({"report", folder_ / "none", "--follow"}), {"not a folder"}));
}

}  // namespace
}  // namespace ringlet::testing
