#include "base/files/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/files/posix_file.h"
#include "tests/support/files.h"

namespace ringlet {
namespace {

namespace fs = std::filesystem;

using testing::message_of;
using testing::read_file;
using testing::says;
using testing::TemporaryDirectory;

std::size_t entries_in(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

/// A limit on the size of files for as long as this lives: a full disk that needs no root.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    old_handler_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit old_{};
  void (*old_handler_)(int) = nullptr;
};

TEST(AtomicFile, ReplacesTheFileOnlyAtCommit) {
  const TemporaryDirectory folder;
  write_file_atomically(folder / "a", "old");
  {
    AtomicFile file(folder / "a");
    file.write("new ");
    file.write("content");
    EXPECT_EQ(read_file(folder / "a"), "old");
    file.commit();
  }
  EXPECT_EQ(read_file(folder / "a"), "new content");
  EXPECT_EQ(entries_in(folder.path()), 1U);
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  const TemporaryDirectory folder;
  { AtomicFile(folder / "a").write("x"); }
  EXPECT_EQ(entries_in(folder.path()), 0U);
}

TEST(AtomicFile, WritesABareNameIntoTheWorkingDirectory) {
  const TemporaryDirectory folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  write_file_atomically("bare", "x");
  fs::current_path(before);
  EXPECT_EQ(read_file(folder / "bare"), "x");
}

TEST(AtomicFile, RemovesWhatKilledWritersLeftAndNothingElse) {
  const TemporaryDirectory folder;
  const posix::Aside living = posix::make_aside_file(folder / "a");
  // Nobody holds the lock of these. The first has all that says who wrote it.
  const fs::path dead = posix::aside_of(folder / "a", "tmp");
  const std::string tag = dead.filename().string().substr(std::string("a.tmp.").size());
  const fs::path elsewhere = folder / ("a.tmp.another-host" + tag.substr(tag.find('.')));
  std::string restarted = tag;  // HOST.BOOT.RANDOM
  char& digit = restarted[tag.rfind('.') - 1];
  digit = digit == '0' ? '1' : '0';
  const fs::path before_restart = folder / ("a.tmp." + restarted);
  const fs::path longer_host = folder / ("a.tmp.0" + tag);
  const std::vector<fs::path> others{elsewhere,
                                     longer_host,
                                     before_restart,
                                     folder / ("b.tmp." + tag),
                                     folder / "a.tmp.20251124",
                                     folder / "a.tmp.notes"};
  testing::write_file(dead, "x");
  for (const fs::path& other : others) testing::write_file(other, "x");
  write_file_atomically(folder / "a", "y");
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::exists(living.path));
  for (const fs::path& other : others) EXPECT_TRUE(fs::exists(other)) << other;
}

// As the processes with equal numbers in two containers, and two runs with one --cache.
TEST(AtomicFile, TwoWritersDoNotHinderEachOther) {
  const TemporaryDirectory folder;
  AtomicFile first(folder / "a"), second(folder / "a");
  first.write("first");
  second.write("second");
  first.commit();
  EXPECT_EQ(read_file(folder / "a"), "first");
  second.commit();
  EXPECT_EQ(read_file(folder / "a"), "second");
  EXPECT_EQ(entries_in(folder.path()), 1U);
}

TEST(AtomicFile, TakesTheLongestNames) {
  const TemporaryDirectory folder;
  const std::string longest(255, 'n');
  write_file_atomically(folder / longest, "x");
  EXPECT_EQ(read_file(folder / longest), "x");
}

// A process number says nothing in another PID namespace; a lock does.
TEST(AtomicFile, OfAWriterInAnotherContainerStays) {
  const TemporaryDirectory folder;
  AtomicFile living(folder / "a");
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) _exit(2);
    const pid_t inside = fork();
    if (inside == 0) {
      write_file_atomically(folder / "a", "theirs");
      _exit(0);
    }
    int status = 0;
    waitpid(inside, &status, 0);
    _exit(WEXITSTATUS(status));
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "no namespaces may be made here";
  EXPECT_EQ(read_file(folder / "a"), "theirs");
  living.write("mine");
  living.commit();
  EXPECT_EQ(read_file(folder / "a"), "mine");
}

TEST(AtomicFile, AFullDiskIsNamedAndTheOldFileStays) {
  const TemporaryDirectory folder;
  write_file_atomically(folder / "a", "old");
  {
    const FileSizeLimit limit(1000);
    EXPECT_TRUE(says(
        message_of<FileError>([&] { write_file_atomically(folder / "a", std::string(5000, 'x')); }),
        {"cannot write " + (folder / "a").string() + ": File too large", "ulimit"}));
  }
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(entries_in(folder.path()), 1U);
}

TEST(AtomicFile, NoSpaceLeftIsNamed) {
  const int full = open("/dev/full", O_WRONLY);
  if (full < 0) GTEST_SKIP() << "there is no /dev/full here";
  EXPECT_TRUE(says(message_of<FileError>([&] { posix::write_all(full, "out/model", "xyz", 3); }),
                   {"cannot write out/model: No space left on device", "free space"}));
  close(full);
}

TEST(AtomicFile, GoesOnAfterAWriteThatTookOnlyAPart) {
  // A full pipe blocks; a signal then makes write() return with the part that it has taken.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  struct sigaction wake {
  }, old{};
  wake.sa_handler = [](int) {};
  sigaction(SIGUSR1, &wake, &old);  // without SA_RESTART
  std::string content;
  for (int i = 0; i < 300'000; ++i) content += static_cast<char>('a' + i % 23);

  std::string received;
  const pthread_t writer = pthread_self();
  std::thread reader([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    pthread_kill(writer, SIGUSR1);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    char piece[4096];
    for (ssize_t got; (got = read(ends[0], piece, sizeof piece)) > 0;) {
      received.append(piece, static_cast<std::size_t>(got));
    }
  });
  posix::write_all(ends[1], "pipe", content.data(), content.size());
  close(ends[1]);
  reader.join();
  close(ends[0]);
  sigaction(SIGUSR1, &old, nullptr);
  EXPECT_TRUE(received == content);
}

TEST(AtomicFile, NamesAFolderThatIsNotThere) {
  const TemporaryDirectory folder;
  EXPECT_TRUE(says(message_of<FileError>([&] { AtomicFile file(folder / "none/a"); }),
                   {(folder / "none/a").string(), "No such file or directory", "make the folder"}));
}

TEST(AtomicFile, NamesAPathThroughAFile) {
  const TemporaryDirectory folder;
  write_file_atomically(folder / "a", "x");
  EXPECT_TRUE(says(message_of<FileError>([&] { AtomicFile file(folder / "a/b"); }),
                   {(folder / "a/b").string(), "Not a directory", "a part of the path is a file"}));
}

TEST(AtomicFile, DoesNotReplaceAFolder) {
  const TemporaryDirectory folder;
  fs::create_directory(folder / "a");
  EXPECT_TRUE(says(message_of<FileError>([&] { write_file_atomically(folder / "a", "x"); }),
                   {(folder / "a").string(), "Is a directory", "something else has that name"}));
  EXPECT_EQ(entries_in(folder.path()), 1U);
}

TEST(AtomicFile, ErrorsHaveTheRemedyThatFits) {
  const auto error = [](int code) {
    return std::string(posix::file_error("write", "out/model", code).what());
  };
  EXPECT_TRUE(says(error(EACCES), {"out/model: Permission denied", "that you may write to"}));
  EXPECT_TRUE(says(error(EROFS), {"Read-only file system", "choose another folder"}));
  EXPECT_TRUE(says(error(EDQUOT), {"quota", "free space"}));
}

TEST(AtomicFile, AFolderWithoutPermissionIsNamed) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const TemporaryDirectory folder;
  fs::create_directory(folder / "locked");
  fs::permissions(folder / "locked", fs::perms::owner_read | fs::perms::owner_exec);
  const std::string locked = (folder / "locked").string();
  EXPECT_TRUE(says(message_of<FileError>([&] { write_file_atomically(locked + "/a", "x"); }),
                   {locked, "Permission denied", "that you may write to"}));
  EXPECT_TRUE(says(message_of<FileError>([&] { require_writable_directory(locked); }),
                   {locked, "Permission denied"}));
}

TEST(WritableDirectory, IsMadeAndLeftEmpty) {
  const TemporaryDirectory folder;
  require_writable_directory(folder / "runs/one");
  EXPECT_EQ(entries_in(folder / "runs/one"), 0U);
}

TEST(WritableDirectory, CannotBeAFile) {
  const TemporaryDirectory folder;
  write_file_atomically(folder / "a", "x");
  EXPECT_TRUE(says(message_of<FileError>([&] { require_writable_directory(folder / "a"); }),
                   {(folder / "a").string()}));
  EXPECT_TRUE(says(message_of<FileError>([&] { require_writable_directory(folder / "a/b"); }),
                   {(folder / "a/b").string(), "Not a directory"}));
}

}  // namespace
}  // namespace ringlet
