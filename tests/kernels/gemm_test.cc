#include "kernels/cpu/gemm.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <new>
#include <thread>
#include <vector>

namespace ringlet {
namespace {

// Replicas are threads that multiply at the same time. A build of OpenBLAS that is not made for
// that loses products now and then: about one in two hundred here.
TEST(Gemm, GivesTheSameBytesFromManyThreadsAtOnce) {
  constexpr std::int64_t kRows = 50, kInner = 500, kColumns = 700;
  constexpr int kThreads = 4, kProducts = 150;
  std::vector<float> a(kRows * kInner), b(kInner * kColumns);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 7919 % 1009) * 1e-3F;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i * 104729 % 997) * 1e-3F;
  const auto product = [&] {
    std::vector<float> c(kRows * kColumns);
    impl::gemm(kRows, kColumns, kInner, {a.data(), kInner}, {b.data(), kColumns}, 0, c.data(),
               kColumns);
    return c;
  };
  const std::vector<float> expected = product();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < kProducts; ++i) wrong += product() != expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

/// Lets this process have 64 MiB of addresses more: half of what OpenBLAS takes for a product.
void limit_addresses() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit limit{};
  ::getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE) + (std::int64_t{64} << 20));
  ::setrlimit(RLIMIT_AS, &limit);
}

/// Ends the process with 7 where a product has no memory, and with a signal after 10 s.
[[noreturn]] void multiply_without_memory() {
  constexpr std::int64_t kSide = 200;
  const std::vector<float> a(kSide * kSide, 1);
  std::vector<float> c(kSide * kSide);
  limit_addresses();
  ::alarm(10);
  try {
    impl::gemm(kSide, kSide, kSide, {a.data(), kSide}, {a.data(), kSide}, 0, c.data(), kSide);
  } catch (const std::bad_alloc&) {
    ::_exit(7);
  }
  ::_exit(0);
}

TEST(GemmDeathTest, IsAnErrorWhereThereAreNoAddresses) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(multiply_without_memory(), ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace ringlet
