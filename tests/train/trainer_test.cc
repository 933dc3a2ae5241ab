// A group's ranks run the replicas of an execution that fits them; any other is refused before a
// thread starts.
#include "train/trainer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/comm/processes.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"
#include "train/sync/transport_choice.h"

namespace ringlet::train {
namespace {

Execution on_processors(std::size_t replicas) {
  return {.devices = std::vector<DeviceId>(replicas)};
}

/// Why the group refuses the execution.
std::string refusal(comm::Group& group, const Execution& execution) {
  return testing::message_of<ContractError>([&] {
    run_replicas(group, execution, [](Device&, comm::Communicator&) { FAIL() << "has started"; });
  });
}

TEST(RunReplicas, OfAGroupRefuseAnOpenTransport) {
  const TrainOptions options = plain_options(2);
  comm::LocalGroup group = threads_of(options.execution);
  const std::string why = "run_replicas: the transport of a group's ranks is decided before";
  EXPECT_EQ(refusal(group, options.execution), why);
  RunSetup setup = make_run_setup(options, formula_splits(64), 2);
  setup.options.execution.transport = TransportChoice::automatic;
  EXPECT_EQ(testing::message_of<ContractError>([&] { train(group, setup, {}); }), why);
  EXPECT_EQ(testing::message_of<ContractError>([&] { evaluate(group, setup, "model"); }), why);
}

TEST(RunReplicas, OfAGroupRefuseMoreOrFewerDevicesThanRanks) {
  comm::LocalGroup group(2);
  for (const std::size_t devices : {1, 3}) {
    EXPECT_EQ(refusal(group, decided(on_processors(devices))),
              "run_replicas: there is a device for each of the group's ranks");
  }
}

TEST(RunReplicas, OfAGroupOfProcessesRefuseAnExecutionForThreads) {
  comm::Processes world({2, 1});
  Execution execution = decided(on_processors(1));
  EXPECT_EQ(refusal(world.group(0), execution),
            "run_replicas: Execution::in_processes says that there are several");
  execution.in_processes = true;
  EXPECT_EQ(refusal(world.group(1), execution),
            "run_replicas: the transport `local` joins the ranks of one process");
}

TEST(RunReplicas, WithoutAGroupRefuseProcesses) {
  const std::string why = "threads_of: ranks of several processes have a ProcessGroup";
  TrainOptions options = plain_options(1);
  options.execution.in_processes = true;
  EXPECT_EQ(testing::message_of<ContractError>([&] { run_replicas(options.execution, {}); }), why);
  const RunSetup setup = make_run_setup(options, formula_splits(64), 2);
  EXPECT_EQ(testing::message_of<ContractError>([&] { train(setup, {}); }), why);
  EXPECT_EQ(testing::message_of<ContractError>([&] { evaluate(setup, "model"); }), why);
}

TEST(RunReplicas, AreTheRanksOfTheGroup) {
  comm::Processes world({2, 2});
  Execution execution = on_processors(2);
  execution.in_processes = true;
  execution = decided(execution);
  std::vector<int> sizes(4);
  comm::run_ranks(2, [&](int process) {
    run_replicas(world.group(process), execution, [&](Device&, comm::Communicator& all) {
      EXPECT_EQ(all.world().local_rank, all.rank() - 2 * process);
      sizes[static_cast<std::size_t>(all.rank())] = all.size();
    });
  });
  EXPECT_EQ(sizes, std::vector<int>(4, 4));
}

TEST(Train, RunsOnAGroup) {
  const RunSetup setup = make_run_setup(plain_options(2), formula_splits(64), 2);
  comm::LocalGroup group = threads_of(setup.options.execution);
  EXPECT_EQ(train(group, setup, {}).step, setup.last_step);
}

// A rank that fails tells the others before it has ended. What one of them then finds gone, such as
// a file aside that rank 0 has removed, is not why the run ended.
TEST(RunReplicas, NameTheFailureThatCameFirst) {
  std::atomic<bool> other_has_failed{false};
  const std::string message = testing::message_of<Error>([&] {
    run_replicas(on_processors(3), [&](Device&, comm::Communicator& communicator) {
      if (communicator.rank() == 0) return;
      if (communicator.rank() == 1) {
        communicator.abort("a row is broken");
        while (!other_has_failed) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it is on its way out
        throw Error("a row is broken");
      }
      while (!communicator.transport().root_cause()) std::this_thread::yield();
      other_has_failed = true;
      throw Error("a file is gone");
    });
  });
  EXPECT_EQ(message, "replica 1 (cpu:0): a row is broken");
}

}  // namespace
}  // namespace ringlet::train
