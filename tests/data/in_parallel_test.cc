#include "data/in_parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/files.h"

namespace ringlet::data {
namespace {

TEST(InParallel, DoesEachThingOnce) {
  for (const int threads : {0, 1, 3, 40}) {
    std::vector<std::atomic<int>> done(20);
    in_parallel(std::ssize(done), threads, [&](std::int64_t i) { ++done[std::size_t(i)]; });
    for (const auto& times : done) EXPECT_EQ(times, 1) << threads;
  }
  in_parallel(0, 4, [](std::int64_t) { FAIL(); });
}

TEST(InParallel, ThrowsTheErrorOfTheFirstThingThatFails) {
  for (const int threads : {1, 4}) {
    const auto work = [](std::int64_t i) {
      if (i >= 7) throw std::runtime_error(std::to_string(i));
    };
    EXPECT_EQ(testing::message_of<std::runtime_error>([&] { in_parallel(100, threads, work); }),
              "7");
  }
}

}  // namespace
}  // namespace ringlet::data
