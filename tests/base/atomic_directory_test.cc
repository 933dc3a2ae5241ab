#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "base/files/aside.h"
#include "base/files/atomic_file.h"
#include "base/files/posix_file.h"
#include "tests/support/files.h"

namespace ringlet {
namespace {

namespace fs = std::filesystem;

using testing::message_of;
using testing::read_file;
using testing::says;
using testing::TemporaryDirectory;
using testing::write_file;

/// Writes a folder whose two files hold the same version.
void save(const fs::path& target, int version) {
  AtomicDirectory folder(target);
  write_file(folder.path() / "one", std::to_string(version));
  write_file_atomically(folder.path() / "two", std::to_string(version));
  folder.commit();
}

int version_of(const fs::path& target) {
  EXPECT_EQ(read_file(target / "one"), read_file(target / "two"));
  return std::atoi(read_file(target / "one").c_str());
}

std::size_t entries_in(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(AtomicDirectory, AppearsAsAWholeAndReplacesTheFormerOne) {
  const TemporaryDirectory folder;
  save(folder / "state", 1);
  EXPECT_EQ(version_of(folder / "state"), 1);
  write_file(folder / "state/more", "a file that the next version lacks");
  save(folder / "state", 2);
  EXPECT_EQ(version_of(folder / "state"), 2);
  EXPECT_EQ(entries_in(folder / "state"), 2U);
  EXPECT_EQ(entries_in(folder.path()), 1U);
}

TEST(AtomicDirectory, KeepsTheFormerOneUnderAnotherName) {
  const TemporaryDirectory folder;
  for (int version = 1; version <= 4; ++version) {
    AtomicDirectory next(folder / "state");
    write_file(next.path() / "one", std::to_string(version));
    write_file(next.path() / "two", std::to_string(version));
    if (version % 2 == 0) {
      next.commit(folder / "before");
      EXPECT_EQ(version_of(folder / "before"), version - 1);
    } else {
      next.commit();
    }
    EXPECT_EQ(version_of(folder / "state"), version);
  }
  save(folder / "next", 5);
  posix::replace_in_two_steps(folder / "next", folder / "state", folder / "before");
  EXPECT_EQ(version_of(folder / "state"), 5);
  EXPECT_EQ(version_of(folder / "before"), 4);
  EXPECT_EQ(entries_in(folder.path()), 2U);
}

TEST(AtomicDirectory, TakesATrailingSlash) {
  const TemporaryDirectory folder;
  save(folder / "state/", 1);
  save(folder / "state/", 2);
  EXPECT_EQ(version_of(folder / "state"), 2);
  EXPECT_EQ(entries_in(folder.path()), 1U);
}

TEST(AtomicDirectory, LeavesNothingWithoutCommit) {
  const TemporaryDirectory folder;
  save(folder / "state", 1);
  {
    AtomicDirectory next(folder / "state");
    write_file(next.path() / "one", "2");
  }
  EXPECT_EQ(version_of(folder / "state"), 1);
  EXPECT_EQ(entries_in(folder.path()), 1U);
}

TEST(AtomicDirectory, ReplacesInTwoStepsWhereItMust) {
  const TemporaryDirectory folder;
  save(folder / "state", 1);
  save(folder / "next", 2);
  posix::replace_in_two_steps(folder / "next", folder / "state");
  EXPECT_EQ(version_of(folder / "state"), 2);
  EXPECT_EQ(entries_in(folder.path()), 1U);
}

TEST(AtomicDirectory, PutsTheFormerOneBackWhenTheSecondStepFails) {
  const TemporaryDirectory folder;
  save(folder / "state", 1);
  EXPECT_TRUE(says(message_of<FileError>([&] {
                     posix::replace_in_two_steps(folder / "not there", folder / "state");
                   }),
                   {(folder / "state").string()}));
  EXPECT_EQ(version_of(folder / "state"), 1);
}

TEST(AtomicDirectory, RecoversFromAKillBetweenTheTwoSteps) {
  const TemporaryDirectory folder;
  save(posix::aside_of(folder / "state", "old"), 1);
  save(posix::aside_of(folder / "state", "tmp"), 2);
  EXPECT_EQ(version_of(AtomicDirectory::current(folder / "state")), 1);  // readers leave it there
  EXPECT_EQ(entries_in(folder.path()), 2U);
  AtomicDirectory::recover(folder / "state");
  EXPECT_EQ(version_of(folder / "state"), 1);
  EXPECT_EQ(entries_in(folder.path()), 1U);
}

TEST(AtomicDirectory, LeavesALivingWriterBetweenTheTwoStepsAlone) {
  const TemporaryDirectory folder;
  const fs::path old = posix::aside_of(folder / "state", "old");
  save(old, 1);
  const Descriptor held = posix::lock_folder(old);
  ASSERT_TRUE(held.open());
  AtomicDirectory::recover(folder / "state");
  EXPECT_EQ(AtomicDirectory::current(folder / "state"), old);
  save(folder / "state", 2);
  EXPECT_EQ(version_of(old), 1);
}

TEST(AtomicDirectory, RemovesWhatKilledWritersLeftAndNothingElse) {
  const TemporaryDirectory folder;
  save(folder / "state", 3);
  for (const char* suffix : {"old", "tmp"}) {
    fs::create_directory(posix::aside_of(folder / "state", suffix));
  }
  const posix::Aside living = posix::make_aside_folder(folder / "state");
  for (const char* users : {"state.old.20251124", "state.tmp.mine"}) {
    fs::create_directory(folder / users);
  }
  AtomicDirectory::recover(folder / "state");
  EXPECT_EQ(version_of(folder / "state"), 3);
  EXPECT_TRUE(fs::exists(living.path));
  EXPECT_TRUE(fs::exists(folder / "state.old.20251124"));
  EXPECT_TRUE(fs::exists(folder / "state.tmp.mine"));
  EXPECT_EQ(entries_in(folder.path()), 4U);
}

TEST(AtomicDirectory, TwoWritersDoNotHinderEachOther) {
  const TemporaryDirectory folder;
  save(folder / "state", 0);
  AtomicDirectory first(folder / "state"), second(folder / "state");
  for (const AtomicDirectory* writer : {&first, &second}) {
    const std::string version = writer == &first ? "1" : "2";
    write_file(writer->path() / "one", version);
    write_file(writer->path() / "two", version);
  }
  first.commit();
  EXPECT_EQ(version_of(folder / "state"), 1);
  second.commit(folder / "before");
  EXPECT_EQ(version_of(folder / "state"), 2);
  EXPECT_EQ(version_of(folder / "before"), 1);
  EXPECT_EQ(entries_in(folder.path()), 2U);
}

TEST(AtomicDirectory, RecoveringNothingDoesNothing) {
  const TemporaryDirectory folder;
  AtomicDirectory::recover(folder / "state");
  AtomicDirectory::recover(folder / "no/such/place");
  EXPECT_EQ(entries_in(folder.path()), 0U);
}

TEST(AtomicDirectory, DoesNotReplaceAFile) {
  const TemporaryDirectory folder;
  write_file(folder / "state", "x");
  EXPECT_TRUE(says(message_of<FileError>([&] { AtomicDirectory next(folder / "state"); }),
                   {(folder / "state").string(), "Not a directory"}));
  EXPECT_EQ(read_file(folder / "state"), "x");
}

TEST(AtomicDirectory, NamesAParentThatIsNotThere) {
  EXPECT_TRUE(says(message_of<FileError>([] { AtomicDirectory next("no/such/place/state"); }),
                   {"no/such/place/state", "No such file or directory", "make the folder first"}));
}

/// A folder in memory where there is one: saving then takes microseconds, so that a kill hits every
/// step of it and not always the flush.
fs::path fastest_parent() {
  const fs::path memory = "/dev/shm";
  return access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path();
}

TEST(AtomicDirectory, SurvivesKillsAtRandomMoments) {
  const TemporaryDirectory folder(fastest_parent());
  const fs::path target = folder / "state";
  save(target, 0);
  int last = 0;
  constexpr int kRounds = 200;
  for (int round = 1; round <= kRounds; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      for (int version = last + 1;; ++version) save(target, version);
    }
    // The last one has the time to save on a slow disk, too.
    const int microseconds = round == kRounds ? 1'000'000 : 200 + 1709 * round % 4000;
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    AtomicDirectory::recover(target);
    const int version = version_of(target);
    EXPECT_GE(version, last);
    last = version;
    EXPECT_EQ(entries_in(folder.path()), 1U);
  }
  EXPECT_GT(last, 0);
}

}  // namespace
}  // namespace ringlet
