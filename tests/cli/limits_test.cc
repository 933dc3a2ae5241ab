// Too little memory for the libraries' threads: the program says so in one line, and ends, whatever
// those threads do.
#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

constexpr long kKiB = 1024;

/// Whether the program begins at all. Sanitizers and CUDA reserve more addresses; OpenBLAS 0.3.29
/// (Debian 13) tries for ever to get 128 MiB for each of its threads before that.
bool begins(long kib) {
  constexpr double kSeconds = 5;
  Program version({"--version"}, {.address_space_limit = kib * kKiB});
  const Outcome outcome = version.wait(kSeconds);
  EXPECT_TRUE(outcome.out.empty() || outcome.code == 0);
  return !outcome.out.empty();
}

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
  for (const long kib : {80'000, 100'000, 120'000, 140'000, 160'000, 200'000, 400'000}) {
    if (!begins(kib)) continue;
    expect_an_end(quick_train({"--replicas", "2"}), kib);
    expect_an_end({"inspect", out}, kib);
    expect_an_end({"inspect", "/no/such/file"}, kib);
  }
}

/// A limit above `too_little`, in KiB, at which ends_well(limit); with 1 MiB less it may not.
template <class EndsWell>
long enough_for(long too_little, EndsWell ends_well) {
  long enough = 4'000'000;
  while (enough - too_little > kKiB) {
    const long kib = (too_little + enough) / 2;
    (ends_well(kib) ? enough : too_little) = kib;
  }
  return enough;
}

// An allocation fails wherever it may: in a replica's thread, in what is done once for all of
// them, while another failure is being told.
TEST(MemoryLimit, IsNamedWhereverAnAllocationFails) {
  const Arguments training = quick_train({"--replicas", "2"});
  if (ringlet(training, {.address_space_limit = 4'000'000 * kKiB}).code != 0) {
    GTEST_SKIP() << "sanitizers and CUDA reserve more addresses";
  }
  const long begun = enough_for(0, begins);
  const long enough = enough_for(begun, [&](long kib) {
    return ringlet(training, {.address_space_limit = kib * kKiB}).code == 0;
  });
  constexpr long kStep = 2000;
  for (long kib = begun + kStep; kib < enough; kib += kStep) {
    expect_an_end(training, kib);
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
