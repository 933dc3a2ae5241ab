// Too little memory for the libraries' threads: the program says so in one line, and ends, whatever
// those threads do.
#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

constexpr long kKiB = 1024;

/// Ends in time, well or with one line that holds a remedy.
void expect_an_end(const Arguments& arguments, long kib) {
  SCOPED_TRACE(std::to_string(kib) + " KiB of addresses");
  const Outcome outcome = ringlet(arguments, {.address_space_limit = kib * kKiB});
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_EQ(outcome.signal, 0);
  if (outcome.code == 0) return;
  EXPECT_TRUE(fails_with(1, outcome, {"; "}));
  EXPECT_EQ(outcome.err.find("std::"), std::string::npos) << outcome.err;
}

TEST(MemoryLimit, EndsTheProgramAndIsNamed) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", out}))));
  for (long kib = 80'000; kib <= 200'000; kib += 20'000) {
    const Outcome version = ringlet({"--version"}, {.address_space_limit = kib * kKiB});
    EXPECT_FALSE(version.timed_out);
    if (version.out.empty()) continue;  // not even started: sanitizers and CUDA reserve more
    EXPECT_EQ(version.code, 0);
    expect_an_end(quick_train({"--replicas", "2"}), kib);
    expect_an_end({"inspect", out}, kib);
    expect_an_end({"inspect", "/no/such/file"}, kib);
  }
}

TEST(MemoryLimit, OfThreadsEndsTheProgramAndIsNamed) {
  constexpr long kMiB = 1024 * kKiB;
  constexpr long kMany = 3000;  // mebibytes: too few for the stacks of a thousand threads
  if (ringlet({"--version"}, {.address_space_limit = kMany * kMiB}).code != 0) {
    GTEST_SKIP() << "sanitizers reserve more addresses";
  }
  const std::pair<const char*, const char*> kNamed[] = {{"--threads", "with 1000 threads"},
                                                        {"--workers", "the 1000 of --workers"}};
  for (const auto& [flag, named] : kNamed) {
    const Outcome outcome =
        ringlet(quick_train({flag, "1000", "--augment", "flip", "--synthetic-train", "4000"}),
                {.address_space_limit = kMany * kMiB});
    EXPECT_FALSE(outcome.timed_out);
    EXPECT_TRUE(fails_with(1, outcome, {"no further thread can be started", named, "; "})) << flag;
  }
}

}  // namespace
}  // namespace ringlet::testing
