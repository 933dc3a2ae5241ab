#include "base/memory_reserve.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <new>
#include <string>
#include <thread>

#include "tests/support/sanitizers.h"

namespace ringlet {
namespace {

/// This process gets no page more than it has.
void leave_no_address() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit limit{};
  ::getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE));
  ::setrlimit(RLIMIT_AS, &limit);
}

constexpr std::size_t kPiece = 64;
constexpr int kMany = 10'000'000;  // pieces: more than what a heap has left

/// In a thread, as replicas are: takes all there is, piece by piece, until an allocation fails.
/// Then puts a long message together. Ends the process with 7 where that was possible.
[[noreturn]] void fail_and_tell(bool aside) {
  if (aside) set_memory_aside();
  std::thread([] {
    leave_no_address();
    try {
      void* volatile piece = nullptr;  // the compiler may leave out an allocation that nobody sees
      for (int i = 0; i < kMany; ++i) piece = ::operator new(kPiece);
      static_cast<void>(piece);
      ::_exit(0);  // the limit does not hold
    } catch (const std::bad_alloc&) {
    }
    try {
      std::string message;
      while (message.size() < 100'000) message += "no memory ";
      ::_exit(7);
    } catch (const std::bad_alloc&) {
      ::_exit(1);
    }
  }).join();
  ::_exit(0);
}

TEST(MemoryReserveDeathTest, HasRoomForWhatFollowsAnAllocationThatFailed) {
  if (testing::kSanitized) GTEST_SKIP() << "the sanitizer's allocator asks nobody";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(fail_and_tell(false), ::testing::ExitedWithCode(1), "");
  EXPECT_EXIT(fail_and_tell(true), ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace ringlet
