// Gloo's own all-reduce: however it is cut short, everybody stops at once and names the root cause,
// and nobody's memory is touched afterwards. (What it computes: process_operations_test.cc.)
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "comm/communicator.h"
#include "comm/processes/tcp_socket.h"
#include "tests/comm/processes.h"

namespace ringlet::comm {
namespace {

using std::chrono::steady_clock;

constexpr double kTimeout = 20;                   // seconds
constexpr auto kSoon = std::chrono::seconds(10);  // a sanitizer on a busy machine is slow
constexpr Split kThree{3, 1, ProcessTransport::gloo};

class GlooEngine : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { skip_without(ProcessTransport::gloo); }
  static CommunicatorOptions options(double timeout_seconds = kTimeout) {
    return {.strategy = GetParam(), .timeout_seconds = timeout_seconds};
  }
};

INSTANTIATE_TEST_SUITE_P(Strategies, GlooEngine, testing::Values("gloo", "library"),
                         [](const auto& test) { return test.param; });

/// Ends of connections of this process's own whose other ends had as many of the kernel's ports.
std::vector<Descriptor> accept_from_many_ports(int many) {
  std::string failure;
  const Descriptor listener(listen_tcp({"127.0.0.1", 0}, failure));
  const TcpAddress address = own_address_of(listener.get());
  std::vector<Descriptor> accepted;
  for (int i = 0; i < many; ++i) {
    const Descriptor other(connect_tcp(address, std::chrono::seconds(5), failure));
    pollfd waiting{listener.get(), POLLIN, 0};
    ::poll(&waiting, 1, -1);
    accepted.emplace_back(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!accepted.back().open()) break;
  }
  return accepted;
}

/// The kernel gives one port to several connections where they lead to different ends. So a port
/// does not tell which connection of a process is another's other end.
TEST(GlooMesh, KnowsItsConnectionsAmongOthersFromTheSamePorts) {
  if (!has_gloo()) GTEST_SKIP() << "built without Gloo (libgloo-dev)";
  constexpr int kMany = 3000;  // of the 14,000 that the kernel picks from: some are met for certain
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlim_t before = files.rlim_cur;
  files.rlim_cur = files.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  if (files.rlim_max < kMany + 1000) GTEST_SKIP() << "so many files may not be open";
  {
    const std::vector<Descriptor> others = accept_from_many_ports(kMany);
    ASSERT_TRUE(others.back().open());
    Processes world({6, 1, ProcessTransport::gloo});
    run_ranks(6, [&](int rank) {
      const auto device = in_place_device();
      Communicator communicator(world.transport(rank), {.strategy = "ring"});
      std::vector<float> data(1000, 1.0F);
      communicator.all_reduce(device->communication(), view_of(data), "bucket 0");
      EXPECT_EQ(data.front(), 6.0F);
    });
  }
  files.rlim_cur = before;
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
}

TEST_P(GlooEngine, EndsWithTheNameOfADeadProcess) {
  for (const int victim : {0, 1, 2}) {
    Processes world(kThree);
    steady_clock::time_point death;
    const auto messages = messages_of_ranks(3, [&](int rank) {
      const auto device = in_place_device();
      Communicator communicator(world.transport(rank), options());
      std::vector<float> data(100'000, 1.0F);
      communicator.all_reduce(device->communication(), view_of(data), "bucket 0");
      if (rank == victim) {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));  // the others wait by then
        death = steady_clock::now();
        return world.kill(victim);
      }
      communicator.all_reduce(device->communication(), view_of(data), "bucket 1");
    });
    EXPECT_LT(steady_clock::now() - death, kSoon);
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == victim) continue;
      EXPECT_TRUE(contains(messages[static_cast<std::size_t>(rank)],
                           "failed: process " + std::to_string(victim) + " (pid "))
          << messages[static_cast<std::size_t>(rank)];
    }
  }
}

TEST_P(GlooEngine, SaysWhoDidNotCome) {
  for (const int absent : {0, 1, 2}) {
    Processes world(kThree);
    world.transport(absent).recorder().set_activity("data loading");
    const auto messages = messages_of_ranks(3, [&](int rank) {
      if (rank == absent) return;
      const auto device = in_place_device();
      Communicator communicator(world.transport(rank), options(0.2));
      std::vector<float> data(1000, 1.0F);
      communicator.all_reduce(device->communication(), view_of(data), "bucket 0");
    });
    // Whoever is late in asking the others around may hear nothing of them any more.
    const std::string name = "rank " + std::to_string(absent);
    const std::string expected = fmt::format(
        "{0} never entered #1 all_reduce bucket 0, 4000 bytes; {0} was last seen in \"data "
        "loading\"",
        name);
    EXPECT_TRUE(contains(messages[0] + messages[1] + messages[2], expected)) << messages[0] << "\n"
                                                                             << messages[1] << "\n"
                                                                             << messages[2];
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(messages[static_cast<std::size_t>(rank)].empty(), rank == absent);
    }
  }
}

TEST_P(GlooEngine, NamesBothSidesOfDifferentLengths) {
  for (const int longer : {0, 1, 2}) {
    Processes world(kThree);
    const auto messages = messages_of_ranks(3, [&](int rank) {
      const auto device = in_place_device();
      Communicator communicator(world.transport(rank), options());
      std::vector<float> data(rank == longer ? 5000U : 100U, 1.0F);
      communicator.all_reduce(device->communication(), view_of(data), "bucket 0");
    });
    const std::string all = messages[0] + messages[1] + messages[2];
    EXPECT_TRUE(contains(all, "20000 bytes") && contains(all, "400 bytes")) << all;
    for (const std::string& message : messages) EXPECT_NE(message, "");
  }
}

TEST_P(GlooEngine, StopsWithTheRootCauseWhereverItIs) {
  for (int round = 0; round < 20; ++round) {
    Processes world(kThree);
    std::thread somebody([&world, round] {
      std::this_thread::sleep_for(std::chrono::microseconds(977 * round));
      world.transport(1).abort("at some moment");
    });
    const auto begin = steady_clock::now();
    const auto messages = messages_of_ranks(3, [&](int rank) {
      const auto device = in_place_device();
      Communicator communicator(world.transport(rank), options());
      while (true) {
        std::vector<float> data(300'000, 1.0F);  // given back each time: a sanitizer watches it
        try {
          communicator.all_reduce(device->communication(), view_of(data), "bucket 0");
        } catch (const Aborted&) {
          const float spoilt = std::numeric_limits<float>::quiet_NaN();
          std::fill(data.begin(), data.end(), spoilt);
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
          for (const float x : data) EXPECT_TRUE(x != x) << "Gloo went on writing";
          throw;
        }
        const bool right = std::all_of(data.begin(), data.end(), [](float x) { return x == 3; });
        if (!right) throw std::runtime_error("a sum is wrong");
      }
    });
    somebody.join();
    EXPECT_LT(steady_clock::now() - begin, kSoon);
    for (const std::string& message : messages) {
      EXPECT_EQ(message, "stopped, because rank 1 failed: at some moment") << "round " << round;
    }
  }
}

TEST_P(GlooEngine, IsThereForProcessesOfOneRankOnly) {
  Processes world({2, 2, ProcessTransport::gloo});
  EXPECT_EQ(world.transport(0).engine(), nullptr);
  EXPECT_THROW(make_all_reduce(GetParam(), world.transport(0)), ContractError);
}

}  // namespace
}  // namespace ringlet::comm
