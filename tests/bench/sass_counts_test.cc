// bench/sass_counts: what it counts in planted machine code, and that our kernels stay at their
// floors, where there is something to read them with.
#include <filesystem>
#include <string>

#include "tests/cli/program.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"

namespace ringlet::testing {
namespace {

const std::string kAveragePool =
    "_ZN7ringlet4impl15for_each_kernelINS_4grid14HalvesBackwardIfLi2ENS2_12AverageShare"
    "IfEEEEEEvlT_";
const std::string kWithBias =
    "_ZN7ringlet4impl12teams_kernelINS_4grid11ChannelSumsILi1ENS2_8BiasSumsINS2_24RectifiedAverage"
    "GradientIfLi2EEEEEEEEEvPjT_";

/// Machine code as cuobjdump prints it; each instruction has its address.
class Sass {
 public:
  explicit Sass(const std::string& function) : text_("\t\tFunction : " + function + "\n") {}
  Sass& add(const std::string& code, int times = 1) {
    for (int i = 0; i < times; ++i, address_ += 16) {
      char line[200];
      std::snprintf(line, sizeof line, "        /*%04x*/  %s ;  /* 0x0 */\n", address_,
                    code.c_str());
      text_ += line;
    }
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  unsigned address_ = 0;
};

std::string hex(int number) {
  char text[20];
  std::snprintf(text, sizeof text, "%x", number);
  return text;
}

class SassCounts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Program(ShellLine{"python3 -c 0 && c++filt --version"}).wait().code != 0) {
      GTEST_SKIP() << "python3 or c++filt is not installed";
    }
  }
  Outcome count(const std::string& flags) const {
    return Program(ShellLine{checkout("bench/sass_counts") + " " + flags}).wait(60);
  }
  Outcome count(const Sass& code) const {
    write_file(folder_ / "code.sass", code.text());
    return count("--check --sass " + (folder_ / "code.sass").string());
  }

  const TemporaryDirectory folder_;
};

TEST_F(SassCounts, TakesTheLongestWayAroundCalls) {
  const Outcome outcome = count(Sass(kAveragePool)
                                    .add("@P0 EXIT")
                                    .add("@P1 BRA 0x50")  // over the next three
                                    .add("IADD3 R1, R2, R3", 3)
                                    .add("@!P2 BRA 0x80")  // over a call
                                    .add("MOV R1, R2")
                                    .add("CALL.REL.NOINC 0x400")
                                    .add("STG.E desc[UR6][R6.64], R11")
                                    .add("EXIT")
                                    .add("BRA 0xa0")  // padding
                                    .add("NOP", 5));
  EXPECT_NE(outcome.out.find("| average pool backward | output | 20 | 8 |"), std::string::npos)
      << outcome.out << outcome.err;
}

TEST_F(SassCounts, AddsTheTurnsOfTheMainLoop) {
  const Outcome outcome = count(Sass(kWithBias)
                                    .add("MOV R1, R2", 10)
                                    .add("LDG.E R1, desc[UR6][R4.64]", 6)  // the loop, from 0xa0
                                    .add("@P0 BRA 0xa0")
                                    .add("MOV R1, R2", 2)
                                    .add("EXIT"));
  // 20 once and 3 x 7, shared by four units
  EXPECT_NE(outcome.out.find("| output | 36 | 10 |"), std::string::npos)
      << outcome.out << outcome.err;
}

TEST_F(SassCounts, LeavesOutWhatTheLastBlockOfATeamDoes) {
  const Outcome outcome = count(Sass(kWithBias)
                                    .add("LDG.E R1, desc[UR6][R4.64]", 7)  // the loop
                                    .add("@P0 BRA 0x0")
                                    .add("MOV R1, R2", 5)
                                    .add("ATOMG.E.ADD.STRONG.GPU PT, R4, desc[UR6][R2.64], R5")
                                    .add("@P0 EXIT")  // of all others
                                    .add("MOV R1, R2", 1000)
                                    .add("EXIT"));
  // 15 once and 3 x 8, shared by four units
  EXPECT_NE(outcome.out.find("| output | 36 | 10 |"), std::string::npos)
      << outcome.out << outcome.err;
}

TEST_F(SassCounts, SeesAKernelFallBehindItsFloor) {
  const auto complaints = [&](const std::string& code, int instructions) {
    const Outcome outcome = count(Sass(kAveragePool).add(code, instructions - 1).add("EXIT"));
    EXPECT_EQ(outcome.code, 1);  // the other kernels are missing
    return outcome.err.find("average pool backward takes") != std::string::npos;
  };
  EXPECT_FALSE(complaints("FFMA R1, R2, R3, R4", 225));  // 230 are 1.3 times the floor
  EXPECT_TRUE(complaints("FFMA R1, R2, R3, R4", 235));
  EXPECT_FALSE(complaints("LDG.E R1, desc[UR6][R4.64]", 50));  // the busiest pipe counts as well
  EXPECT_TRUE(complaints("LDG.E R1, desc[UR6][R4.64]", 65));
}

const std::string kMoments =
    "_ZN7ringlet4impl12teams_kernelINS_4grid11ChannelSumsILi1ENS2_12MomentSourceIfLi4ELi1EEE"
    "EEEEvPjT_";

/// What is said of a loop with a load of 16 bytes, `between`, and another; five blocks of 256.
TEST_F(SassCounts, AddsUpWhatIsUnderWayBeforeTheFirstUse) {
  const auto said = [&](const std::string& between, const std::string& behind = "MOV R1, R2") {
    return count(Sass(kMoments)
                     .add("LDG.E.64 R4, desc[UR6][R30.64]")  // the loop
                     .add(between)
                     .add("LDG.E.64 R6, desc[UR6][R32.64]")
                     .add("FADD R9, R6, R4")
                     .add("@P0 BRA 0x0")
                     .add(behind)
                     .add("EXIT"));
  };
  const Outcome both = said("MOV R1, R2");
  EXPECT_NE(both.out.find(" | 20 |"), std::string::npos) << both.out << both.err;
  EXPECT_EQ(both.err.find("under way"), std::string::npos) << both.err;
  const Outcome one = said("FADD R9, R8, R5");  // the second half of what the first has loaded
  EXPECT_NE(one.err.find("batch norm moments has 10.2 KB under way; 16.5 keep memory busy"),
            std::string::npos)
      << one.err;
  const Outcome many = said("MOV R1, R2", "MOV R48, R2");
  EXPECT_NE(many.err.find("has 56 registers; 48 leave room for 5 blocks"), std::string::npos)
      << many.err;
}

const std::string kMomentsOfRows =
    "_ZN7ringlet4impl12teams_kernelINS_4grid11ChannelSumsILi16ENS2_12MomentSourceIfLi2ELi2EEE"
    "EEEEvPjT_";

TEST_F(SassCounts, HoldsAKernelThatWasTimedToWhatItAskedFor) {
  const auto said = [&](int loads) {
    Sass code(kMomentsOfRows);
    for (int i = 0; i < 4; ++i) {  // the loop
      if (i == loads) code.add("FADD R1, R20, R1");
      code.add("LDG.E.64 R" + std::to_string(20 + 2 * i) + ", desc[UR6][R30.64]");
    }
    return count(code.add("FADD R1, R26, R1").add("@P0 BRA 0x0").add("EXIT"));
  };
  const Outcome all = said(4);
  EXPECT_NE(all.out.find(" | 25 |"), std::string::npos) << all.out << all.err;
  EXPECT_EQ(all.err.find("it was fastest"), std::string::npos) << all.err;
  const Outcome three = said(3);
  EXPECT_NE(three.err.find("batch norm moments, nhwc asks for 24 bytes before it uses the first; "
                           "with 32 it was fastest"),
            std::string::npos)
      << three.err;
}

const std::string kProducts =
    "_ZN7ringlet4impl12turns_kernelINS_4grid14FilterProductsIfNS2_10FilterTileILi128ELi128ELi8ELi8E"
    "Li2EEEEEEEvT_";

/// What is said of a turn with `around` and four times 64 multiply-adds with so many `loads`.
TEST_F(SassCounts, SaysWhatShareOfThePeakAProductReaches) {
  const auto said = [&](int around, const std::string& load, int loads) {
    return count(Sass(kProducts)
                     .add("MOV R1, R2", around)  // the main loop
                     .add(load, loads)           // the loop in it
                     .add("FFMA R1, R2, R3, R1", 64)
                     .add("@P0 BRA 0x" + hex(16 * around))
                     .add("@P1 BRA 0x0")
                     .add("EXIT"));
  };
  const Outcome fast = said(59, "LDS.128 R4, [R1]", 3);
  EXPECT_NE(fast.out.find("| filter gradient, 128 x 128 | 332 | 256 | 0.77 |"), std::string::npos)
      << fast.out << fast.err;
  EXPECT_EQ(fast.err.find("of the peak"), std::string::npos) << fast.err;
  const Outcome issue = said(159, "LDS.128 R4, [R1]", 3);
  EXPECT_NE(issue.err.find("128 x 128 can reach 0.59 of the peak"), std::string::npos) << issue.err;
  const Outcome shared = said(59, "LDS.128 R4, [R1]", 8);  // 128 cycles, and 64 of multiply-adds
  EXPECT_NE(shared.err.find("128 x 128 can reach 0.50 of the peak"), std::string::npos)
      << shared.err;
}

TEST_F(SassCounts, OurKernelsStayAtTheirFloors) {
  const std::string objects = built("kernels/cuda/CMakeFiles/ringlet_cuda.dir");
  if (!std::filesystem::exists(objects)) GTEST_SKIP() << "a build without CUDA";
  const Outcome outcome = count("--check " + objects + "/*.cu.o");
  if (outcome.code == 77) GTEST_SKIP() << outcome.err;
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

}  // namespace
}  // namespace ringlet::testing
