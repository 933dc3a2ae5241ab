// bench/report_plot on the page of a small real run: the picture is SVG, and has the plot's lines.
#include "tests/cli/program.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"

namespace ringlet::testing {
namespace {

class ReportPlot : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Program(ShellLine{"python3 -c 0"}).wait().code != 0) {
      GTEST_SKIP() << "python3 is not installed";
    }
  }
  Outcome plot(const std::string& flags) const {
    return Program(ShellLine{"cd " + folder_.path().string() + " && " +
                             checkout("bench/report_plot") + " " + flags})
        .wait(60);
  }

  const TemporaryDirectory folder_;
};

TEST_F(ReportPlot, TakesOnePlotWithItsNames) {
  const std::string page = folder_ / "page.html";
  const Outcome bench =
      Program(ShellLine{built("bin/ringlet") +
                        " bench all-reduce --ranks 2 --begin 1K --end 4K --iterations 3 "
                        "--strategies ring,one-shot --report " +
                        page})
          .wait(60);
  ASSERT_EQ(bench.code, 0) << bench.err;
  for (const std::string name : {"busbw-1", "time-1"}) {
    const Outcome outcome = plot("page.html plot.svg --note 'a <note>' --plot " + name);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const Outcome seen = Program(ShellLine{"python3 -c \"import sys, xml.etree.ElementTree as t; "
                                           "r = t.parse(sys.argv[1]).getroot(); "
                                           "print(len(r.findall('.//{*}circle')), "
                                           "*sorted(e.text for e in r.findall('.//{*}text') "
                                           "if 'name' in e.get('class', '')), r[-1].text)\" " +
                                           (folder_ / "plot.svg").string()})
                             .wait(60);
    EXPECT_EQ(seen.out, "6 one-shot ring a <note>\n") << seen.err;
  }
}

TEST_F(ReportPlot, SaysInOneLineWhatItCannotDo) {
  write_file(folder_ / "page.html", "<figure class=\"plot\" id=\"time-1\"></figure>");
  write_file(folder_ / "other.html", "<p>");
  for (const auto& [flags, words] : {std::pair{"page.html x.svg", "it has: time-1"},
                                     {"page.html x.svg --plot time-1", "make it anew"},
                                     {"other.html x.svg", "is no page of"},
                                     {"none.html x.svg", "none.html"},
                                     {"page.html no/x.svg --plot time-1", "make it anew"}}) {
    const Outcome outcome = plot(flags);
    EXPECT_EQ(outcome.code, 1) << flags;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "x.svg"));
  }
}

}  // namespace
}  // namespace ringlet::testing
