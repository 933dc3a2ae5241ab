// Ranks of several processes: the same sums, bytes and errors as between threads of one.
#include "comm/process_group.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <ctime>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/processors.h"
#include "comm/communicator.h"
#include "tests/comm/failing_transport.h"
#include "tests/comm/processes.h"

namespace ringlet::comm {
namespace {

using std::chrono::steady_clock;
using Values = std::vector<float>;

double seconds_since(steady_clock::time_point begin) {
  return std::chrono::duration<double>(steady_clock::now() - begin).count();
}

constexpr auto kShm = ProcessTransport::shm;
constexpr auto kGloo = ProcessTransport::gloo;

class ProcessesTest : public testing::TestWithParam<ProcessTransport> {
 protected:
  void SetUp() override { skip_without(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Over, ProcessesTest, testing::Values(kShm, kGloo),
                         [](const auto& test) { return std::string(name_of(test.param)); });

class SplitTest : public testing::TestWithParam<Split> {
 protected:
  void SetUp() override { skip_without(GetParam().transport); }
};

std::vector<Split> splits() {
  std::vector<Split> all;
  for (const auto transport : {kShm, kGloo}) {
    for (const auto& [processes, replicas] :
         {std::pair{1, 4}, {2, 1}, {3, 1}, {2, 2}, {4, 1}, {2, 3}}) {
      all.push_back({processes, replicas, transport});
    }
  }
  for (const auto& [processes, replicas, machines] :
       {std::tuple{2, 2, 2}, {4, 1, 2}, {3, 2, 2}, {4, 1, 4}}) {
    all.push_back({processes, replicas, kGloo, machines});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Splits, SplitTest, testing::ValuesIn(splits()),
                         [](const auto& test) { return identifier(name_of(test.param)); });

TEST_P(SplitTest, EveryRankKnowsItsWorld) {
  Processes world(GetParam());
  const Split split = GetParam();
  const int replicas = split.replicas;
  std::vector<int> ranks_of(static_cast<std::size_t>(split.machines));
  for (int process = 0; process < split.processes; ++process) {
    ranks_of[static_cast<std::size_t>(split.machine_of(process))] += replicas;
  }
  std::vector<int> seen(ranks_of.size());
  for (int rank = 0; rank < world.size(); ++rank) {
    const int machine = split.machine_of(rank / replicas);
    const auto i = static_cast<std::size_t>(machine);
    EXPECT_EQ(world.transport(rank).world(),
              (World{rank, split.processes * replicas, rank % replicas, replicas, machine,
                     split.machines, seen[i]++, ranks_of[i]}));
  }
  EXPECT_THROW(world.group(0).transport(replicas), ContractError);
}

/// The strategies that run between processes.
std::vector<std::string> strategies_of(Processes& world) {
  std::vector<std::string> names;
  for (const std::string& name : strategies_of_threads()) {
    const bool reaches = world.transport(0).peer_access() != nullptr;
    if (reaches || !needs_peer_access(name)) names.push_back(name);
  }
  return names;
}

/// Integers, so that sums are exact in any order; different for each rank and element.
Values input_of(int rank, std::size_t count) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 131) % 1009) - 500.0F;
  }
  return values;
}

TEST_P(SplitTest, AllReduceSumsExactlyAndSendsWhatTheFormulaSays) {
  Processes world(GetParam());
  const int size = world.size();
  const auto p = static_cast<std::size_t>(size);
  for (const std::string& strategy : strategies_of(world)) {
    for (const std::size_t count : std::vector<std::size_t>{0, 1, p - 1, p, p + 1, 1000, 100000}) {
      Values expected(count, 0.0F);
      for (int rank = 0; rank < size; ++rank) {
        const Values input = input_of(rank, count);
        for (std::size_t i = 0; i < count; ++i) expected[i] += input[i];
      }
      run_ranks(size, [&](int rank) {
        const auto device = in_place_device();
        const auto reduce = make_all_reduce(strategy, world.transport(rank));
        Values values = input_of(rank, count);
        const std::int64_t before = world.transport(rank).bytes_sent();
        reduce->run(device->communication(), view_of(values), ReduceOp::sum);
        EXPECT_EQ(values, expected) << strategy << " " << count << " rank " << rank;
        EXPECT_EQ(world.transport(rank).bytes_sent() - before,
                  reduce->bytes_sent(static_cast<std::int64_t>(count)));
      });
    }
  }
}

TEST_P(SplitTest, SumsHaveTheBitsOfOneProcess) {
  Processes world(GetParam());
  LocalGroup group(world.size());
  std::vector<int> machine_of;  // strategies may add in another order where there are several
  for (int rank = 0; rank < world.size(); ++rank) {
    machine_of.push_back(GetParam().machine_of(rank / GetParam().replicas));
  }
  group.set_machines(machine_of);
  for (const std::string& strategy : strategies_of(world)) {
    if (strategy == "auto") continue;  // picks another one here and there
    run_ranks(world.size(), [&](int rank) {
      const auto device = in_place_device();
      Values here(5000), there(5000);
      for (std::size_t i = 0; i < here.size(); ++i) {
        here[i] = 1.0F / static_cast<float>(i + 3 * static_cast<std::size_t>(rank) + 1);
      }
      there = here;
      make_all_reduce(strategy, group.transport(rank))
          ->run(device->communication(), view_of(here), ReduceOp::sum);
      make_all_reduce(strategy, world.transport(rank))
          ->run(device->communication(), view_of(there), ReduceOp::sum);
      EXPECT_EQ(std::memcmp(here.data(), there.data(), here.size() * sizeof(float)), 0);
    });
  }
}

TEST_P(SplitTest, ACommunicatorsCallsWorkBesideEachOther) {
  Processes world(GetParam());
  const int size = world.size();
  run_ranks(size, [&](int rank) {
    const auto device = open_device({}, {.threads = 1, .overlap = rank % 2 == 0});
    Stream& stream = device->communication();
    Communicator communicator(world.transport(rank));
    Values sums(1000, 1.0F), root(10, static_cast<float>(rank));
    communicator.all_reduce(stream, view_of(sums), "bucket 0");
    communicator.broadcast(stream, size - 1, view_of(root), "weights");
    communicator.barrier(stream, "start");
    EXPECT_EQ(sums, Values(1000, static_cast<float>(size)));
    EXPECT_EQ(root, Values(10, static_cast<float>(size - 1)));
    communicator.require_equal(stream, {{"batch", "64"}});
    const auto texts =
        communicator.gather_text(stream, std::string(static_cast<std::size_t>(rank), 'x'), "names");
    for (int other = 0; other < size; ++other) {
      EXPECT_EQ(texts[static_cast<std::size_t>(other)].size(), static_cast<std::size_t>(other));
    }
  });
  run_ranks(GetParam().processes, [&](int process) { world.group(process).leave(); });
}

TEST_P(SplitTest, AFailureAtAnyExchangeStopsEverybodyWithTheRootCause) {
  const int size = GetParam().processes * GetParam().replicas;
  for (const std::string strategy : {"ring", "doubling"}) {
    for (int failing = 0; failing < size; failing += std::max(1, size / 2)) {
      for (const int at : {0, 1}) {
        Processes world(GetParam());
        const auto begin = steady_clock::now();
        const auto messages = messages_of_ranks(size, [&](int rank) {
          FailingTransport transport(world.transport(rank),
                                     rank == failing ? at : FailingTransport::kNever);
          const auto device = in_place_device();
          Communicator communicator(transport, {.strategy = strategy});
          Values data(1000, 1.0F);
          while (true) communicator.all_reduce(device->communication(), view_of(data), "bucket 0");
        });
        EXPECT_LT(seconds_since(begin), 5);
        for (int rank = 0; rank < size; ++rank) {
          const std::string secondary =
              "stopped, because rank " + std::to_string(failing) + " failed: the cable was cut";
          EXPECT_EQ(messages[static_cast<std::size_t>(rank)],
                    rank == failing ? "the cable was cut" : secondary);
        }
      }
    }
  }
}

TEST_P(ProcessesTest, KeepTheOrderOfMessagesOfAnyLength) {
  // Over shared memory: beside their number, in one piece, in more pieces than there is room for.
  constexpr std::array kLengths{1U, 5U, 100000U, 4U, 2U, 512U, 513U, 3U, 0U, 20000U, 100U};
  Processes world({2, 1, GetParam()});
  run_ranks(2, [&](int rank) {
    const auto device = in_place_device();
    Stream& stream = device->communication();
    Transport& transport = world.transport(rank);
    transport.set_timeout(20);
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    for (std::size_t message = 0; message < 5 * kLengths.size(); ++message) {
      std::vector<float> data(kLengths[message % kLengths.size()], static_cast<float>(message));
      if (rank == 0) {
        transport.send(stream, 1, view_of(data));
        std::fill(data.begin(), data.end(), -1.0F);
        continue;
      }
      transport.receive(stream, 0, view_of(data), Combine::add);
      ASSERT_EQ(data, std::vector<float>(data.size(), 2 * static_cast<float>(message))) << message;
    }
  });
}

TEST_P(ProcessesTest, NameBothSidesOfDifferentLengths) {
  Processes world({2, 1, GetParam()});
  const auto messages = messages_of_ranks(2, [&](int rank) {
    const auto device = in_place_device();
    Values data(rank == 0 ? 5U : 3U);
    if (rank == 0) {
      world.transport(0).send(device->communication(), 1, view_of(data));
      world.transport(0).receive(device->communication(), 1, view_of(data));
    } else {
      world.transport(1).receive(device->communication(), 0, view_of(data));
    }
  });
  EXPECT_TRUE(contains(messages[1], "rank 0 sends 20 bytes")) << messages[1];
  EXPECT_TRUE(contains(messages[1], "rank 1 expects 12 bytes")) << messages[1];
  EXPECT_TRUE(contains(messages[0], "stopped, because rank 1 failed: rank 0 sends 20"))
      << messages[0];
}

TEST_P(ProcessesTest, NameTheMessagesThatDoNotMatch) {
  Processes world({2, 1, GetParam()});
  const auto messages = messages_of_ranks(2, [&](int rank) {
    const auto device = in_place_device();
    std::vector<float> data(2);
    Transport& own = world.transport(rank);
    own.set_timeout(5);
    if (rank == 0) {
      const FlightRecorder::Moving moving(own.recorder(), {CollectiveKind::activation, 2}, {});
      own.send(device->communication(), 1, view_of(data));
      own.receive(device->communication(), 1, view_of(data));
    } else {
      const FlightRecorder::Moving moving(own.recorder(), {}, {CollectiveKind::activation, 1});
      own.receive(device->communication(), 0, view_of(data));
    }
  });
  EXPECT_TRUE(
      contains(messages[1],
               "rank 0 sends 8 bytes in the activation of micro-batch 2, but rank 1 expects "
               "8 bytes in the activation of micro-batch 1; "))
      << messages[1];
}

TEST_P(ProcessesTest, NameTheCollectivesThatDoNotMatch) {
  Processes world({2, 1, GetParam()});
  const auto messages = messages_of_ranks(2, [&](int rank) {
    const auto device = in_place_device();
    Communicator communicator(world.transport(rank), {"naive", 5});
    Values data(100);
    if (rank == 1) {  // sends 400 bytes, as many as rank 0 expects
      communicator.all_reduce(device->communication(), view_of(data), "loss");
    } else {
      communicator.broadcast(device->communication(), 1, view_of(data), "weights");
    }
  });
  const std::string all = messages[0] + messages[1];
  EXPECT_TRUE(contains(all, "#1 all_reduce loss, 400 bytes")) << all;
  EXPECT_TRUE(contains(all, "#1 broadcast weights, 400 bytes")) << all;
}

// Two ranks meet over boards, and the third sends messages: nobody would ever come.
TEST(ProcessesOfOneMachine, NameCollectivesThatMeetInUnlikeWays) {
  const auto begin = std::chrono::steady_clock::now();
  Processes world({3, 1});
  const auto messages = messages_of_ranks(3, [&](int rank) {
    const auto device = in_place_device();
    Communicator communicator(world.transport(rank), {"ring", 12});
    Values data(100);
    if (rank == 1) {
      communicator.all_reduce(device->communication(), view_of(data), "loss");
    } else {
      communicator.broadcast(device->communication(), 0, view_of(data), "weights");
    }
  });
  const std::string all = messages[0] + messages[1] + messages[2];
  EXPECT_TRUE(contains(all, "#1 all_reduce loss, 400 bytes")) << all;
  EXPECT_TRUE(contains(all, "#1 broadcast weights, 400 bytes, root 0")) << all;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(8));
}

// A message of 8000 bytes leaves at once, and its sender waits in the next collective.
TEST(ProcessesOfOneMachine, NameACollectiveThatOneHasLeft) {
  const auto begin = std::chrono::steady_clock::now();
  Processes world({2, 1});
  const auto messages = messages_of_ranks(2, [&](int rank) {
    const auto device = in_place_device();
    Communicator communicator(world.transport(rank), {"ring", 12});
    Values data(rank == 0 ? 2000 : 4);
    communicator.broadcast(device->communication(), 0, view_of(data), "weights");
    communicator.all_reduce(device->communication(), view_of(data), "loss");
  });
  const std::string all = messages[0] + messages[1];
  EXPECT_TRUE(contains(all,
                       "rank 0 is in #2 all_reduce loss, 8000 bytes, and rank 1 waits for it "
                       "in #1 broadcast weights, 16 bytes, root 0"))
      << all;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(8));
}

TEST_P(ProcessesTest, SayWhoDidNotComeAndWhatThatRankDidLast) {
  Processes world({2, 2, GetParam()});
  world.transport(3).recorder().set_activity("data loading");
  const auto messages = messages_of_ranks(4, [&](int rank) {
    if (rank == 3) return;
    const auto device = in_place_device();
    Communicator communicator(world.transport(rank), {.timeout_seconds = 0.2});
    communicator.barrier(device->communication(), "start");
  });
  std::string root;
  for (int rank = 0; rank < 3; ++rank) {
    const std::string& message = messages[static_cast<std::size_t>(rank)];
    if (!contains(message, "stopped")) root += message;
  }
  EXPECT_TRUE(contains(root,
                       "rank 3 never entered #1 barrier start, 0 bytes; rank 3 was last seen "
                       "in \"data loading\" "))
      << root;
  EXPECT_TRUE(contains(root, "wait in #1") || contains(root, "waits in #1")) << root;
}

TEST_P(ProcessesTest, ADeadProcessEndsTheWaitOfAllOthers) {
  for (const int victim : {0, 1, 2}) {
    Processes world({3, 2, GetParam()});
    std::atomic<int> victims_out{0};
    steady_clock::time_point death;
    const auto messages = messages_of_ranks(6, [&](int rank) {
      const auto device = in_place_device();
      Communicator communicator(world.transport(rank));
      communicator.barrier(device->communication(), "start");
      if (rank / 2 == victim) {
        if (++victims_out < 2) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(30));  // the others wait by then
        death = steady_clock::now();
        return world.kill(victim);
      }
      Values data(100'000, 1.0F);
      communicator.all_reduce(device->communication(), view_of(data), "bucket 0");
    });
    EXPECT_LT(seconds_since(death), 2);
    for (int rank = 0; rank < 6; ++rank) {
      if (rank / 2 == victim) continue;
      EXPECT_TRUE(contains(messages[static_cast<std::size_t>(rank)],
                           "failed: process " + std::to_string(victim) + " (pid "))
          << messages[static_cast<std::size_t>(rank)];
    }
  }
}

TEST_P(ProcessesTest, AnAbortOutsideOfACollectiveReachesThoseWhoWait) {
  Processes world({2, 2, GetParam()});
  const auto messages = messages_of_ranks(4, [&](int rank) {
    const auto device = in_place_device();
    Communicator communicator(world.transport(rank));
    if (rank == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      communicator.abort("labels.idx is cut off");
      return;
    }
    communicator.barrier(device->communication(), "start");
  });
  for (const int rank : {0, 1, 3}) {
    EXPECT_EQ(messages[static_cast<std::size_t>(rank)],
              "stopped, because rank 2 failed: labels.idx is cut off");
  }
  EXPECT_THROW(world.group(1).throw_failure(), CommError) << "its process tells the user";
  EXPECT_THROW(world.group(0).throw_failure(), Aborted);
}

TEST_P(ProcessesTest, AgreeOnWhatOneOfThemBrings) {
  Processes world({3, 2, GetParam()});
  std::vector<std::string> agreed(3);
  run_ranks(3, [&](int process) {
    Group& group = world.group(process);
    std::optional<std::string> mine;
    if (process == 1) mine = "from process 1";
    agreed[static_cast<std::size_t>(process)] = group.agree("key", mine, 20);
    if (process == 1) mine = "its second value";
    EXPECT_EQ(group.agree("key", mine, 20), "its second value");
    EXPECT_EQ(group.process(), process);
    EXPECT_EQ(group.processes(), 3);
    EXPECT_EQ(group.first_rank(), 2 * process);
  });
  EXPECT_EQ(agreed, std::vector<std::string>(3, "from process 1"));
}

TEST(ProcessesOfSeveralMachines, SayWhereTheyAreAndHowTheyAreJoined) {
  if (!has_gloo()) GTEST_SKIP() << "built without Gloo (libgloo-dev)";
  Processes world({3, 1, ProcessTransport::automatic, 2});
  EXPECT_EQ(world.transport(0).path(), "gloo between 2 machines, shm inside");
  EXPECT_EQ(world.transport(2).hosts(), "ranks 0 and 1 are on host 0, rank 2 is on host 1");
  EXPECT_EQ(world.transport(0).peer_access(), nullptr);
  const auto messages = messages_of_ranks(3, [&](int rank) {
    const auto device = in_place_device();
    Communicator communicator(world.transport(rank));
    communicator.require_equal(device->communication(), {{"data", rank < 2 ? "x" : "y"}});
  });
  EXPECT_TRUE(
      contains(messages[0], "ranks 0 and 1 have x, rank 2 has y (ranks 0 and 1 are on host"))
      << messages[0];
}

TEST(ProcessesOfSeveralMachines, DoNotShareMemory) {
  const std::string run = new_run();
  const auto messages = messages_of_ranks(2, [&](int process) {
    const std::string host = "host " + std::to_string(process);
    ProcessGroup group({process, 2, run, "test"},
                       {.timeout_seconds = 5, .machine = host, .host = host});
  });
  const std::string why =
      "--transport shm joins processes of one machine, and rank 0 is on host 0, rank 1 is on host "
      "1; use --transport gloo, mpi or auto";
  EXPECT_TRUE(contains(messages[0], why)) << messages[0];
  EXPECT_TRUE(contains(messages[1], why)) << messages[1];
}

/// Lets the calling thread run on these processors.
void bind_to(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) CPU_SET(static_cast<std::size_t>(processor), &set);
  ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
}

/// Seconds that the process, or the calling thread, has had processors.
double processor_seconds(clockid_t clock) {
  timespec used{};
  clock_gettime(clock, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

void compute_for(double seconds) {
  const double end = processor_seconds(CLOCK_THREAD_CPUTIME_ID) + seconds;
  while (processor_seconds(CLOCK_THREAD_CPUTIME_ID) < end) relax_processor();
}

/// Where ranks and Gloo's threads share a processor, none of them spins until the scheduler's tick:
/// that took 2.4 ms of the processor an exchange. What others do beside it does not count.
TEST(GlooProcesses, SpinNowhereOnOneProcessor) {
  skip_without(kGloo);
  if (!has_gloo()) return;
  std::thread([] {
    constexpr int kRounds = 100;
    constexpr double kWork = 1e-3, kMost = 1.5e-3;  // seconds
    bind_to({allowed_processors().front()});
    Processes world({2, 1, kGloo});
    const double before = processor_seconds(CLOCK_PROCESS_CPUTIME_ID);
    run_ranks(2, [&](int rank) {
      const auto device = in_place_device();
      std::vector<float> out(16'384), in(16'384);
      for (int round = 0; round < kRounds; ++round) {
        compute_for(kWork);
        world.transport(rank).exchange(device->communication(), 1 - rank, view_of(out), 1 - rank,
                                       view_of(in));
      }
    });
    const double used = processor_seconds(CLOCK_PROCESS_CPUTIME_ID) - before;
    EXPECT_LT(used / kRounds - 2 * kWork, kMost);
  }).join();
}

TEST_P(ProcessesTest, KnowTheProcessorsOfAllTogether) {
  const std::vector<int> allowed = allowed_processors();
  if (allowed.size() < 2 || processor_quota() < 2) GTEST_SKIP() << "one processor";
  Processes world({2, 1, GetParam()});
  run_ranks(2, [&](int process) {
    bind_to({allowed[0]});
    EXPECT_EQ(world.group(process).processors(20), 1) << "both on the same";
    bind_to({allowed[static_cast<std::size_t>(process)]});
    EXPECT_EQ(world.group(process).processors(20), 2) << "each on its own";
  });
}

TEST_P(ProcessesTest, ShareMemory) {
  Processes world({3, 2, GetParam()});
  std::vector<std::shared_ptr<void>> first(3), second(3);
  run_ranks(3, [&](int process) {
    const auto i = static_cast<std::size_t>(process);
    first[i] = world.group(process).share("first", 10'000, 20);
    second[i] = world.group(process).share("second", 100, 20);
    EXPECT_EQ(static_cast<const char*>(first[i].get())[9'999], 0);
  });
  static_cast<char*>(first[1].get())[9'999] = 7;
  for (const auto& memory : first) EXPECT_EQ(static_cast<const char*>(memory.get())[9'999], 7);
  EXPECT_EQ(static_cast<const char*>(second[0].get())[99], 0);
}

TEST_P(ProcessesTest, RefuseSharedMemoryOfAnotherSize) {
  Processes world({2, 1, GetParam()});
  const auto messages = messages_of_ranks(
      2, [&](int process) { world.group(process).share("key", process == 0 ? 5'000 : 100, 20); });
  EXPECT_EQ(messages[0], "");
  EXPECT_EQ(messages[1],
            "the memory that process 0 shares cannot be used: it has 8192 bytes and not 4096; "
            "start all processes with the same program, or use --replicas in one process");
}

TEST_P(ProcessesTest, MustHaveTheSameNumberOfReplicas) {
  const std::string run = new_run();
  const auto messages = messages_of_ranks(2, [&](int process) {
    ProcessGroup group({process, 2, run, "test"},
                       {.replicas = process + 1, .timeout_seconds = 5, .transport = GetParam()});
  });
  EXPECT_EQ(messages[0],
            "the processes do not agree on the replicas of a process: process 0 has 1, process 1 "
            "has 2; start all with the same flags");
}

}  // namespace
}  // namespace ringlet::comm
