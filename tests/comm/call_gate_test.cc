#include "comm/transport/call_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace ringlet::comm {
namespace {

TEST(CallGate, LetsInUntilItIsClosed) {
  CallGate gate;
  {
    const CallGate::Pass first(gate), second(gate);
    EXPECT_TRUE(first);
    EXPECT_TRUE(second);
  }
  gate.close();
  EXPECT_FALSE(CallGate::Pass(gate));
  gate.close();  // every rank of a process closes it
}

TEST(CallGate, IsClosedOnlyWhenAllHaveLeft) {
  for (int round = 0; round < 50; ++round) {
    CallGate gate;
    std::atomic<int> inside{0};
    std::atomic<bool> begun{false};
    std::vector<std::thread> callers;
    for (int i = 0; i < 3; ++i) {
      callers.emplace_back([&] {
        while (true) {
          const CallGate::Pass pass(gate);
          if (!pass) return;
          ++inside;
          begun = true;
          std::this_thread::yield();
          --inside;
        }
      });
    }
    while (!begun) std::this_thread::yield();
    gate.close();
    EXPECT_EQ(inside, 0);
    for (std::thread& caller : callers) caller.join();
  }
}

}  // namespace
}  // namespace ringlet::comm
