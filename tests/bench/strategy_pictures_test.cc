// bench/strategy_pictures on a small real run: what it draws is SVG, and has what the strategy
// does.
#include <sstream>

#include "tests/cli/program.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;

/// The parts of the pictures of four ranks: boxes, arrows, and lines to others' memory.
struct Drawn {
  const char* strategy;
  int spans, messages, reaches;
};
constexpr Drawn kDrawn[] = {{"naive", 12, 6, 0},   {"tree", 12, 6, 0},
                            {"ring", 24, 24, 0},   {"halving-doubling", 16, 16, 0},
                            {"doubling", 8, 8, 0}, {"one-shot", 8, 0, 4},
                            {"two-shot", 4, 0, 4}, {"two-level", 24, 24, 0}};

/// Parses $1 with a reader that refuses what is not well-formed, and prints what is compared.
constexpr const char* kReader = R"(
import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
marks = [element.get("class") for element in root.iter()]
sizes = [float(element.get("font-size", 99)) for element in root.iter()]
print(root.tag.split("}")[1], marks.count("span"), marks.count("message"), marks.count("reach"),
      float(root.get("width")) <= 720, min(sizes) >= 11, root[0].text)
)";

class StrategyPictures : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Program(ShellLine{"python3 -c 0"}).wait().code != 0) {
      GTEST_SKIP() << "python3 is not installed";
    }
  }
  Outcome draw(const std::string& flags) const {
    return Program(ShellLine{checkout("bench/strategy_pictures") + " --ringlet " +
                             built("bin/ringlet") + " --out " + folder_.path().string() + " " +
                             flags})
        .wait(120);
  }

  const TemporaryDirectory folder_;
};

TEST_F(StrategyPictures, DrawsWhatEachStrategyDoes) {
  const Outcome outcome = draw("--size 16K --runs 1");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  write_file(folder_ / "read.py", kReader);
  for (const Drawn& drawn : kDrawn) {
    const std::string name = "all-reduce-" + std::string(drawn.strategy) + ".svg";
    const fs::path picture = folder_ / name;
    const Outcome seen =
        Program(ShellLine{"python3 " + (folder_ / "read.py").string() + " " + picture.string()})
            .wait();
    std::ostringstream wanted;
    wanted << "svg " << drawn.spans << ' ' << drawn.messages << ' ' << drawn.reaches
           << " True True " << drawn.strategy << ": 4 ranks, 16 KiB each, ";
    EXPECT_TRUE(seen.out.starts_with(wanted.str())) << seen.out << seen.err;
    EXPECT_TRUE(holds(seen.out, {" 4 threads on ", "The shortest of 3 traced calls."}));
    EXPECT_LT(fs::file_size(picture), 30U << 10) << name;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 9);  // nothing is left over
}

TEST_F(StrategyPictures, DrawsAWorldThatIsNoPowerOfTwo) {
  const Outcome outcome = draw("--size 12K --runs 1 --ranks 3 --strategies ring,doubling,tree");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(
      holds(read_file(folder_ / "all-reduce-ring.svg"), {">rank 2<", "ring: 3 ranks, 12 "}));
}

TEST_F(StrategyPictures, RefusesWhatItCannotDrawInALine) {
  for (const std::string flags : {"--strategies nccl", "--ranks 9", "--runs 0", "--size many",
                                  "--out /no/such/folder", "--ringlet /no/such/program"}) {
    const Outcome outcome = draw(flags);
    EXPECT_NE(outcome.code, 0) << flags;
    EXPECT_TRUE(outcome.err.starts_with("strategy_pictures: error: ")) << outcome.err;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
  }
}

}  // namespace
}  // namespace ringlet::testing
