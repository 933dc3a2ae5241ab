#include "kernels/cpu/gemm.h"

#include <gtest/gtest.h>

#include <atomic>
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

}  // namespace
}  // namespace ringlet
