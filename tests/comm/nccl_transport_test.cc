// The transport over NCCL on a machine without a GPU: over a stand-in of the library, which notes
// how it is called. cuda_transport_test.cc shows the same of NCCL itself, where there are GPUs.
#include "comm/transport/nccl/nccl_transport.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/shared_library.h"
#include "comm/communicator.h"
#include "comm/mesh.h"
#include "comm/transport/nccl/nccl_backend.h"
#include "kernels/capture.h"
#include "kernels/cuda_devices.h"
#include "kernels/memory.h"
#include "tests/comm/async_device.h"
#include "tests/comm/nccl_stand_in.h"
#include "tests/comm/ranks.h"
#include "tests/support/gpu.h"
#include "tests/support/testdata.h"

namespace ringlet::comm {
namespace {

using Strings = std::vector<std::string>;

/// The streams of AsyncDevices.
class AsyncStreams final : public GpuStreams {
 public:
  cudaStream_t handle_of(Stream& stream) const override {
    StandInStream* const handle = &static_cast<AsyncStream&>(stream);
    return reinterpret_cast<cudaStream_t>(handle);
  }
  bool is_busy(cudaStream_t handle) const override {
    auto* const stream = reinterpret_cast<StandInStream*>(handle);
    return static_cast<AsyncStream*>(stream)->is_busy();
  }
  std::string gpu_of(Stream& stream) const override {
    return "GPU-" + std::to_string(stream.device().id().index);
  }
};

const std::string kLibrary = ringlet::testing::built("tests/comm/libringlet_nccl_stand_in.so");

NcclStandIn& stand_in() {
  static const SharedLibrary library(kLibrary.c_str(), "build the tests");
  static NcclStandIn* const made = library.function<NcclStandInFunction>(kNcclStandInFunction)();
  return *made;
}

class NcclTransport : public ::testing::Test {
 protected:
  /// What a rank has in its hands.
  struct Rank {
    int number;
    AsyncDevice& device;
    Transport& transport;
    AsyncStream& stream() { return device.communication(); }
  };

  void SetUp() override { stand_in().reset(); }
  void TearDown() override {
    EXPECT_EQ(stand_in().violation(), "");
    EXPECT_EQ(stand_in().communicators(), 0);
    EXPECT_EQ(stand_in().registered(), 0);
    EXPECT_EQ(stand_in().allocated(), 0);
  }

  /// Runs body(rank) on every rank, with a transport each; what each threw, or "". As in a run, the
  /// others are told of what is thrown before the transport ends.
  Strings messages_of(int size, const std::function<void(Rank&)>& body) {
    group_.emplace(size);
    if (!machine_of_rank_.empty()) group_->set_machines(machine_of_rank_);
    const auto nccl = open_nccl({library_, streams_, operations_});
    return messages_of_ranks(size, [&](int number) {
      AsyncDevice device(gpu_of_rank_ ? gpu_of_rank_(number) : number);
      Transport& host = group_->transport(number);
      host.set_timeout(timeout_);
      const auto transport = nccl->join(host, device.communication(), wants_captures_);
      Rank rank{number, device, *transport};
      try {
        body(rank);
      } catch (const std::exception& error) {
        host.abort(error.what());
        throw;
      }
    });
  }
  void run(int size, const std::function<void(Rank&)>& body) {
    const Strings messages = messages_of(size, body);
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_EQ(messages[static_cast<std::size_t>(rank)], "") << "rank " << rank << " threw";
    }
  }
  /// The first that failed, and why.
  std::string cause() const { return group_->root_cause() ? group_->root_cause()->message : ""; }

  const NcclFunctions library_ = open_nccl_library(kLibrary.c_str());
  const AsyncStreams streams_{};
  const AsyncOperations operations_{};
  double timeout_ = 30;
  bool wants_captures_ = false;
  std::function<int(int)> gpu_of_rank_{};
  std::vector<int> machine_of_rank_{};  // empty: all on one
  std::optional<LocalGroup> group_;
};

Strings names_of(const std::vector<NcclCall>& calls) {
  Strings names;
  for (const NcclCall& call : calls) names.push_back(call.name);
  return names;
}

void fill_with(const View& data, float value) { std::fill_n(data.f32(), data.count(), value); }

/// Waits until a rank's stream is in the middle of a group.
void await_running(int rank) {
  while (stand_in().running(rank) == 0) std::this_thread::yield();
}

TEST_F(NcclTransport, SumsByEveryStrategy) {
  for (const char* strategy : {"naive", "tree", "ring", "doubling", "nccl", "library"}) {
    for (const int size : {1, 2, 3, 4}) {
      run(size, [&](Rank& rank) {
        Communicator communicator(rank.transport, {.strategy = strategy});
        for (const std::int64_t count : {0, 1, 2, 7, 1001}) {
          const Tensor data(rank.device, {count});
          fill_with(data, static_cast<float>(1 << rank.number));
          communicator.all_reduce(rank.stream(), data, "sum");
          rank.stream().synchronize();
          const float sum = static_cast<float>((1 << size) - 1);
          for (std::int64_t i = 0; i < count; ++i) {
            ASSERT_EQ(data.view().f32()[i], sum) << strategy << ", " << size << " ranks, " << count;
          }
        }
      });
      EXPECT_EQ(stand_in().violation(), "") << strategy;
      stand_in().reset();
    }
  }
}

TEST_F(NcclTransport, CallsInOrderOnTheStreamOfTheRank) {
  std::vector<const StandInStream*> streams(2);
  run(2, [&](Rank& rank) {
    streams[static_cast<std::size_t>(rank.number)] = &rank.stream();
    Communicator communicator(rank.transport, {.strategy = "library"});
    const Tensor data(rank.device, {3});
    fill_with(data, 1);
    communicator.all_reduce(rank.stream(), data, "sum");
    if (rank.number == 0) {
      rank.transport.send(rank.stream(), 1, data);
      rank.transport.receive(rank.stream(), 1, data);
    } else {
      rank.transport.receive(rank.stream(), 0, data);
      rank.transport.send(rank.stream(), 0, data);
    }
    rank.stream().synchronize();
  });
  for (const int rank : {0, 1}) {
    const std::vector<NcclCall> calls = stand_in().calls(rank);
    const char* const first = rank == 0 ? "ncclSend" : "ncclRecv";
    const char* const second = rank == 0 ? "ncclRecv" : "ncclSend";
    ASSERT_EQ(names_of(calls), (Strings{"ncclCommInitRankConfig", "ncclReduce", "ncclBroadcast",
                                        first, second, "ncclCommFinalize", "ncclCommDestroy"}));
    for (std::size_t i = 1; i < 5; ++i) {
      EXPECT_EQ(calls[i].group, static_cast<int>(i));  // a group each
      EXPECT_EQ(calls[i].stream, streams[static_cast<std::size_t>(rank)]);
      EXPECT_EQ(calls[i].bytes, 3 * sizeof(float));
      EXPECT_EQ(calls[i].peer, i < 3 ? 0 : 1 - rank);
    }
  }
}

TEST_F(NcclTransport, SendsAndReceivesInOneGroup) {
  run(2, [&](Rank& rank) {
    const Tensor mine(rank.device, {5}), theirs(rank.device, {5});
    fill_with(mine, static_cast<float>(rank.number));
    rank.transport.exchange(rank.stream(), 1 - rank.number, mine, 1 - rank.number, theirs);
    rank.stream().synchronize();
    EXPECT_EQ(theirs.view().f32()[4], static_cast<float>(1 - rank.number));
  });
  const std::vector<NcclCall> calls = stand_in().calls(0);
  ASSERT_EQ(calls.size(), 5U);
  EXPECT_EQ(calls[1].group, calls[2].group);
}

// Whoever sends nothing still waits for nobody, and whoever receives nothing waits for its sender.
TEST_F(NcclTransport, AnEmptyExchangeMeetsItsPeer) {
  bool has_come = false;
  run(2, [&](Rank& rank) {
    if (rank.number == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      has_come = true;
      rank.transport.send(rank.stream(), 0, View(nullptr, {0}));
    } else {
      rank.transport.receive(rank.stream(), 1, View(nullptr, {0}));
      rank.stream().synchronize();
      EXPECT_TRUE(has_come);
    }
    rank.stream().synchronize();
  });
}

TEST_F(NcclTransport, RegistersTheMemoryThatItGives) {
  const void* address = nullptr;
  run(2, [&](Rank& rank) {
    Allocator& allocator = rank.transport.allocator(rank.device);
    AsyncDevice other(7);
    EXPECT_EQ(&rank.transport.allocator(other), &other);  // not the transport's
    const Tensor data(allocator, {100});
    if (rank.number == 0) address = data.view().data();
    Communicator communicator(rank.transport, {.strategy = "nccl"});
    fill_with(data, 1);
    communicator.all_reduce(rank.stream(), data, "sum");
    rank.stream().synchronize();
    EXPECT_EQ(data.view().f32()[99], 2);
    EXPECT_EQ(rank.device.bytes_held(), 0);
  });
  const std::vector<NcclCall> calls = stand_in().calls(0);
  EXPECT_EQ(names_of(calls),
            (Strings{"ncclCommInitRankConfig", "ncclCommRegister", "ncclAllReduce",
                     "ncclCommDeregister", "ncclCommFinalize", "ncclCommDestroy"}));
  for (const std::size_t i : {1, 2, 3}) EXPECT_EQ(calls[i].address, address);
  EXPECT_EQ(calls[1].bytes, 400U);
}

TEST_F(NcclTransport, GivesTheDevicesMemoryWhereItsOwnIsSwitchedOff) {
  setenv("RINGLET_NCCL_MEMORY", "off", 1);  // NOLINT(concurrency-mt-unsafe): no threads yet
  run(2, [&](Rank& rank) { EXPECT_EQ(&rank.transport.allocator(rank.device), &rank.device); });
  unsetenv("RINGLET_NCCL_MEMORY");  // NOLINT(concurrency-mt-unsafe): no threads any more
}

TEST_F(NcclTransport, GoesOnWithMemoryThatIsNotRegistered) {
  stand_in().inject({0, "ncclCommRegister", NcclFault::fails});
  run(2, [&](Rank& rank) {
    const Tensor data(rank.transport.allocator(rank.device), {4});
    Communicator communicator(rank.transport, {.strategy = "nccl"});
    fill_with(data, 1);
    communicator.all_reduce(rank.stream(), data, "sum");
    rank.stream().synchronize();
    EXPECT_EQ(data.view().f32()[3], 2);
  });
}

// The ranks' threads stand for processes here.
TEST_F(NcclTransport, LetsGraphsHoldItsCalls) {
  wants_captures_ = true;
  for (const char* strategy : {"nccl", "library", "ring"}) {
    run(3, [&](Rank& rank) {
      ASSERT_NE(rank.transport.captures(), nullptr) << rank.transport.why_no_captures();
      Communicator communicator(rank.transport, {.strategy = strategy});
      const Tensor data(rank.device, {10});
      rank.stream().workspace(1 << 20);
      fill_with(data, 1);
      std::unique_ptr<Graph> graph;
      {
        const CaptureScope scope(rank.transport.captures());
        const auto sum = [&] {
          communicator.all_reduce(rank.stream(), data, "sum");
          std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the watcher must not ask
        };
        graph = capture(rank.stream(), sum);
      }
      for (int launch = 0; launch < 3; ++launch) {
        rank.stream().launch(*graph);
        communicator.graph_launched(rank.stream(), 40, "a graph");
      }
      rank.stream().synchronize();
      EXPECT_EQ(data.view().f32()[9], 27) << strategy;
    });
    EXPECT_EQ(stand_in().violation(), "") << strategy;
    stand_in().reset();
  }
}

TEST_F(NcclTransport, LetsNoGraphHoldItsCallsWhereItWasNotAsked) {
  run(2, [](Rank& rank) { EXPECT_EQ(rank.transport.captures(), nullptr); });
  EXPECT_EQ(names_of(stand_in().calls(0)), (Strings{"ncclCommInitRankConfig", "ncclCommFinalize",
                                                    "ncclCommDestroy"}));  // and tries nothing
}

// NCCL's refusal leaves a communicator that is of no use any more.
TEST_F(NcclTransport, GoesOnWithoutGraphsWhereARankCannotCapture) {
  wants_captures_ = true;
  stand_in().inject({1, "ncclGroupEnd", NcclFault::fails, true});
  run(3, [&](Rank& rank) {
    EXPECT_EQ(rank.transport.captures(), nullptr);
    EXPECT_TRUE(rank.transport.why_no_captures().starts_with(
        "rank 1: ncclAllReduce failed on rank 1 (meta:1): internal error"))
        << rank.transport.why_no_captures();
    Communicator communicator(rank.transport, {.strategy = "nccl"});
    const Tensor data(rank.device, {10});
    fill_with(data, 1);
    communicator.all_reduce(rank.stream(), data, "sum");
    rank.stream().synchronize();
    EXPECT_EQ(data.view().f32()[9], 3);
  });
  EXPECT_EQ(
      names_of(stand_in().calls(0)),
      (Strings{"ncclCommInitRankConfig", "ncclAllReduce", "ncclAllReduce", "ncclCommAbort",
               "ncclCommInitRankConfig", "ncclAllReduce", "ncclCommFinalize", "ncclCommDestroy"}));
}

TEST_F(NcclTransport, EndsARankWhoseGraphWaitsForOneThatNeverComes) {
  wants_captures_ = true;
  messages_of(2, [](Rank& rank) {
    Communicator communicator(rank.transport, {.strategy = "nccl", .timeout_seconds = 0.2});
    const Tensor data(rank.device, {10});
    const auto sum = [&] { communicator.all_reduce(rank.stream(), data, "sum"); };
    std::unique_ptr<Graph> graph;
    {
      const CaptureScope scope(rank.transport.captures());
      graph = capture(rank.stream(), sum);
    }
    if (rank.number == 1) {
      communicator.set_activity("data loading");
      while (!rank.transport.root_cause()) std::this_thread::yield();
      return;
    }
    rank.stream().launch(*graph);
    communicator.graph_launched(rank.stream(), 40, "all buckets, in a graph");
    rank.stream().synchronize();
    communicator.require_alive();
  });
  EXPECT_TRUE(contains(cause(), "rank 1 never entered #2 all_reduce all buckets, in a graph"))
      << cause();
}

TEST_F(NcclTransport, NamesTwoRanksOnOneGpu) {
  gpu_of_rank_ = [](int rank) { return rank == 2 ? 0 : rank; };
  const Strings messages = messages_of(3, [](Rank&) { FAIL() << "a rank was let in"; });
  for (const std::string& message : messages) {
    EXPECT_TRUE(contains(message,
                         "ranks 0 and 2 (meta:0 and meta:0) have one GPU, GPU-0, and NCCL "
                         "needs one for each"))
        << message;
  }
  EXPECT_EQ(stand_in().calls(0).size(), 0U);  // NCCL was asked for nothing
}

TEST_F(NcclTransport, JoinsMachinesWhoseGpusHaveTheSameNumbers) {
  machine_of_rank_ = {0, 0, 1, 1};
  gpu_of_rank_ = [](int rank) { return rank % 2; };  // of two on each machine
  for (const char* strategy : {"two-level", "ring", "nccl", "auto"}) {
    run(4, [&](Rank& rank) {
      EXPECT_EQ(rank.transport.path(), "nccl between 2 machines");
      Communicator communicator(rank.transport, {.strategy = strategy});
      const Tensor data(rank.device, {1001});
      fill_with(data, static_cast<float>(1 << rank.number));
      communicator.all_reduce(rank.stream(), data, "sum");
      rank.stream().synchronize();
      for (std::int64_t i = 0; i < 1001; ++i) ASSERT_EQ(data.view().f32()[i], 15) << strategy;
    });
    EXPECT_EQ(stand_in().violation(), "") << strategy;
    EXPECT_EQ(names_of(stand_in().calls(3)).front(), "ncclCommInitRankConfig");  // by rank 0's id
    stand_in().reset();
  }
}

TEST_F(NcclTransport, NamesTwoRanksOnOneGpuOfAMachineAmongSeveral) {
  machine_of_rank_ = {0, 0, 1, 1};
  gpu_of_rank_ = [](int rank) { return rank == 1 ? 1 : 0; };
  const Strings messages = messages_of(4, [](Rank&) { FAIL() << "a rank was let in"; });
  for (const std::string& message : messages) {
    EXPECT_TRUE(
        contains(message, "ranks 2 and 3 (meta:0 and meta:0) have one GPU, machine 1: GPU-0"))
        << message;
  }
}

// The states in which a rank may be when the world is given up.

TEST_F(NcclTransport, FailsWhereARankCannotInitialise) {
  stand_in().inject({1, "ncclCommInitRankConfig", NcclFault::fails});
  const Strings messages = messages_of(3, [](Rank&) { FAIL() << "a rank was let in"; });
  EXPECT_EQ(cause(),
            "ncclCommInitRankConfig failed on rank 1 (meta:1): internal error: the stand-in was "
            "told so; NCCL_DEBUG=INFO in the environment makes NCCL say more");
  EXPECT_TRUE(messages[0].starts_with("stopped")) << messages[0];
}

TEST_F(NcclTransport, NamesTheRankThatWaitsForTheOthersToInitialise) {
  timeout_ = 0.2;
  stand_in().inject({1, "ncclCommInitRankConfig", NcclFault::endless});
  messages_of(2, [](Rank&) { FAIL() << "a rank was let in"; });
  EXPECT_TRUE(contains(cause(), "waited 0.2 s in ncclCommInitRankConfig for the other ranks"))
      << cause();
}

TEST_F(NcclTransport, FailsInAGroup) {
  for (const char* call : {"ncclSend", "ncclRecv", "ncclGroupEnd"}) {
    stand_in().inject({0, call, NcclFault::fails});
    const Strings messages = messages_of(2, [](Rank& rank) {
      Communicator communicator(rank.transport, {.strategy = "ring"});
      const Tensor data(rank.device, {10});
      fill_with(data, 1);
      communicator.all_reduce(rank.stream(), data, "sum");
      rank.stream().synchronize();
      communicator.require_alive();
    });
    EXPECT_TRUE(contains(cause(), "ncclSend and ncclRecv failed on rank 0 (meta:0)")) << cause();
    EXPECT_TRUE(messages[1].starts_with("stopped")) << messages[1];
    EXPECT_EQ(stand_in().violation(), "") << call;
    EXPECT_EQ(stand_in().communicators(), 0) << call;
    stand_in().reset();
  }
}

TEST_F(NcclTransport, EndsAGroupThatIsNeverEnqueued) {
  stand_in().inject({0, "ncclGroupEnd", NcclFault::endless});
  const Strings messages = messages_of(2, [](Rank& rank) {
    Communicator communicator(rank.transport, {.strategy = "nccl", .timeout_seconds = 0.2});
    const Tensor data(rank.device, {10});
    fill_with(data, 1);
    communicator.all_reduce(rank.stream(), data, "sum");
    rank.stream().synchronize();
    communicator.require_alive();
  });
  EXPECT_TRUE(contains(cause(), "in ncclAllReduce for the other ranks") ||
              contains(cause(), "for its device in #1 all_reduce sum"))
      << cause();
}

TEST_F(NcclTransport, AnIdleRankHearsThatAnotherHasFailed) {
  const Strings messages = messages_of(2, [](Rank& rank) {
    if (rank.number == 1) throw std::runtime_error("a fuse blew");
    while (!rank.transport.root_cause()) std::this_thread::yield();
    while (stand_in().communicators() > 0) std::this_thread::yield();  // its watcher ends it
    const Tensor data(rank.device, {10});
    rank.transport.exchange(rank.stream(), 1, data, kNobody, {});
  });
  EXPECT_EQ(cause(), "a fuse blew");
  EXPECT_TRUE(messages[0].starts_with("stopped")) << messages[0];
  EXPECT_EQ(names_of(stand_in().calls(0)), (Strings{"ncclCommInitRankConfig", "ncclCommAbort"}));
}

TEST_F(NcclTransport, EndsWhatIsInFlight) {
  const Strings messages = messages_of(2, [](Rank& rank) {
    if (rank.number == 1) {
      await_running(0);
      throw std::runtime_error("a fuse blew");
    }
    const Tensor data(rank.device, {10});
    rank.transport.receive(rank.stream(), 1, data);
    rank.stream().synchronize();  // comes to rest when the communicator is ended
    if (const auto found = rank.transport.root_cause()) throw Aborted(*found);
  });
  EXPECT_TRUE(messages[0].starts_with("stopped")) << messages[0];
  EXPECT_EQ(names_of(stand_in().calls(0)),
            (Strings{"ncclCommInitRankConfig", "ncclRecv", "ncclCommAbort"}));
}

TEST_F(NcclTransport, EndsAStreamThatDoesNotMove) {
  messages_of(2, [](Rank& rank) {
    Communicator communicator(rank.transport, {.strategy = "nccl", .timeout_seconds = 0.2});
    if (rank.number == 1) {
      communicator.set_activity("data loading");
      while (!rank.transport.root_cause()) std::this_thread::yield();
      return;
    }
    const Tensor data(rank.device, {10});
    communicator.all_reduce(rank.stream(), data, "sum");
    rank.stream().synchronize();
    communicator.require_alive();
  });
  EXPECT_TRUE(contains(cause(), "rank 1 never entered #1 all_reduce sum")) << cause();
}

TEST_F(NcclTransport, HearsWhatNcclRunsIntoByItself) {
  messages_of(2, [](Rank& rank) {
    if (rank.number == 1) {
      await_running(0);
      stand_in().break_connection(0);
      while (!rank.transport.root_cause()) std::this_thread::yield();
      return;
    }
    const Tensor data(rank.device, {10});
    rank.transport.receive(rank.stream(), 1, data);
    rank.stream().synchronize();
  });
  EXPECT_EQ(cause(),
            "NCCL failed on rank 0 (meta:0): remote process exited: the stand-in was told so");
}

TEST_F(NcclTransport, ARankThatCannotFinaliseIsEnded) {
  stand_in().inject({0, "ncclCommFinalize", NcclFault::endless});
  run(2, [](Rank& rank) {
    Communicator communicator(rank.transport);
    communicator.barrier(rank.stream(), "the end");
    rank.transport.set_timeout(0.2);
  });
  EXPECT_EQ(names_of(stand_in().calls(0)),
            (Strings{"ncclCommInitRankConfig", "ncclCommFinalize", "ncclCommAbort"}));
  EXPECT_TRUE(contains(cause(), "waited 0.2 s in ncclCommFinalize for the other ranks")) << cause();
}

// An abort that hangs can be waited for only. But the world has heard of it, and who runs the ranks
// then ends the process (train/loop/replica_watch.h).
TEST_F(NcclTransport, TellsOfAnAbortThatHangs) {
  stand_in().inject({0, "ncclCommFinalize", NcclFault::fails});
  stand_in().inject({0, "ncclCommAbort", NcclFault::hangs});
  std::string heard;
  std::thread rescuer([&] {
    while (stand_in().hanging() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    heard = cause();
    stand_in().release();
  });
  const Strings messages = messages_of(2, [](Rank&) {});
  rescuer.join();
  EXPECT_TRUE(contains(heard, "ncclCommFinalize failed on rank 0 (meta:0): internal error"))
      << heard;
  EXPECT_EQ(messages[0], "");
}

// ncclCommAbort waits until all graphs that have a call of the communicator are gone. The rank that
// holds one lets go of it behind its CaptureScope.
TEST_F(NcclTransport, LeavesACaptureWhileAnAbortWaitsForItsGraph) {
  wants_captures_ = true;
  stand_in().inject({0, "ncclCommAbort", NcclFault::hangs});
  std::atomic<bool> captured{false}, is_gone{false};
  std::thread library([&] {
    const auto begin = std::chrono::steady_clock::now();
    while (!is_gone && std::chrono::steady_clock::now() - begin < std::chrono::seconds(10)) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(is_gone) << "rank 0 waits for the abort, and that for rank 0";
    stand_in().release();
  });
  const Strings messages = messages_of(2, [&](Rank& rank) {
    Communicator communicator(rank.transport, {.strategy = "nccl"});
    const Tensor data(rank.device, {10});
    const auto sum = [&] { communicator.all_reduce(rank.stream(), data, "sum"); };
    if (rank.number == 1) {
      {
        const CaptureScope scope(rank.transport.captures());
        (void)capture(rank.stream(), sum);
      }
      while (!captured) std::this_thread::yield();
      throw DeviceError("no memory for the graph");
    }
    std::unique_ptr<Graph> graph;
    {
      const CaptureScope scope(rank.transport.captures());
      graph = capture(rank.stream(), sum);
      captured = true;
      while (stand_in().hanging() == 0) std::this_thread::yield();
    }
    graph.reset();
    is_gone = true;
    communicator.require_alive();
  });
  library.join();
  EXPECT_TRUE(contains(messages[0], "no memory for the graph")) << messages[0];
}

// The thread that watches must not wait for one that hangs in a call.
TEST_F(NcclTransport, WatchesOnWhileACallHangs) {
  const auto await_cause = [this] {
    const auto begin = std::chrono::steady_clock::now();
    while (!group_->root_cause() &&
           std::chrono::steady_clock::now() - begin < std::chrono::seconds(5)) {
      std::this_thread::yield();
    }
    return group_->root_cause().has_value();
  };
  messages_of(2, [&](Rank& rank) {
    if (rank.number == 1) {
      await_cause();
      return;
    }
    const Tensor data(rank.device, {10});
    rank.transport.set_timeout(0.2);
    rank.transport.receive(rank.stream(), 1, data);  // never comes: the stream stalls
    stand_in().inject({0, "ncclGroupEnd", NcclFault::hangs});
    std::thread rescuer([&] {
      EXPECT_TRUE(await_cause());
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      EXPECT_EQ(stand_in().hanging(), 1);  // nobody is torn down under the call
      EXPECT_EQ(stand_in().running(0), 1);
      stand_in().release();
    });
    try {
      rank.transport.send(rank.stream(), 1, data);
    } catch (const Aborted&) {
    } catch (const CommError&) {
    }
    rescuer.join();
    rank.stream().synchronize();
  });
  EXPECT_TRUE(contains(cause(), "rank 0 waited 0.2 s for its device")) << cause();
}

// A communicator of NCCL's for each axis of a mesh, on a stream each.
TEST_F(NcclTransport, SumsAlongTwoAxesSideBySide) {
  LocalGroup group(4);
  const MeshGroup mesh(group, {{"stage", 2}, {"data", 2}});
  const auto nccl = open_nccl({library_, streams_, operations_});
  run_ranks(4, [&](int number) {
    AsyncDevice device(number);
    const auto data = nccl->join(mesh.transport(number, "data"), device.communication());
    const auto stage = nccl->join(mesh.transport(number, "stage"), device.compute());
    const Mesh::Over over = [&](std::string_view axis, Transport& host) -> Transport& {
      return axis == "data" ? *data : axis == "stage" ? *stage : host;
    };
    Mesh own(mesh, number, {.strategy = "ring", .timeout_seconds = 20}, over);
    const std::vector<std::pair<const char*, AsyncStream*>> axes{{"data", &device.communication()},
                                                                 {"stage", &device.compute()}};
    std::vector<std::thread> threads;
    for (const auto& [axis, stream] : axes) {
      threads.emplace_back([&, axis = axis, stream = stream] {
        const Tensor sums(device, {1001});
        for (int i = 0; i < 20; ++i) {
          fill_with(sums, static_cast<float>(1 << number));
          own.axis(axis).all_reduce(*stream, sums, axis);
          stream->synchronize();
          float expected = 0;
          for (const int rank : mesh.ranks_along(number, axis)) {
            expected += static_cast<float>(1 << rank);
          }
          EXPECT_EQ(sums.view().f32()[1000], expected) << axis << " of rank " << number;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

TEST_F(NcclTransport, ATimeOutNamesTheAxisAndThePeer) {
  LocalGroup group(4);
  const MeshGroup mesh(group, {{"stage", 2}, {"data", 2}});
  const auto nccl = open_nccl({library_, streams_, operations_});
  run_ranks(4, [&](int number) {
    AsyncDevice device(number);
    const auto stage = nccl->join(mesh.transport(number, "stage"), device.communication());
    Communicator communicator(*stage, {.strategy = "ring", .timeout_seconds = 20});
    if (number == 3) {
      while (!group.root_cause()) std::this_thread::yield();
    }
    if (number != 1) return;
    stage->set_timeout(0.2);
    const Tensor data(device, {10});
    communicator.all_reduce(device.communication(), data, "activations");
    device.communication().synchronize();
  });
  ASSERT_TRUE(group.root_cause());
  EXPECT_EQ(group.root_cause()->rank, 1);
  EXPECT_TRUE(contains(group.root_cause()->message,
                       "axis stage (ranks 1 and 3): rank 3 never entered #1 all_reduce "
                       "activations, 40 bytes"))
      << group.root_cause()->message;
}

TEST(CudaNcclRanks, MayShareAGpuWhereNcclTakesThemToBeOnSeveralHosts) {
  SKIP_WITHOUT_GPU();
  const auto device = open_device({DeviceKind::cuda, 0});
  const GpuStreams streams{};
  const auto gpu_on = [&](const char* host) {
    setenv("NCCL_HOSTID", host, 1);  // NOLINT(concurrency-mt-unsafe)
    return streams.gpu_of(device->communication());
  };
  EXPECT_NE(gpu_on("r0"), gpu_on("r1"));
  EXPECT_EQ(gpu_on("r1"), gpu_on("r1"));
  unsetenv("NCCL_HOSTID");  // NOLINT(concurrency-mt-unsafe)
  EXPECT_TRUE(streams.gpu_of(device->communication()).starts_with("GPU-"));
}

}  // namespace
}  // namespace ringlet::comm
