#include "train/sync/transport_choice.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "comm/transport/nccl/nccl_transport.h"

namespace ringlet::train {
namespace {

Execution execution(const std::vector<std::string>& devices, TransportChoice transport,
                    const std::string& sync = "ring") {
  Execution result;
  result.devices.clear();
  for (const std::string& device : devices) result.devices.push_back(DeviceId::parse(device));
  result.transport = transport;
  result.sync = sync;
  return result;
}

/// The same as one of several processes.
Execution in_processes(const std::vector<std::string>& devices, TransportChoice transport,
                       const std::string& sync = "ring") {
  Execution result = execution(devices, transport, sync);
  result.in_processes = true;
  return result;
}

std::string refusal(const Execution& refused) {
  try {
    return std::string("took ") + name_of(choose_transport(refused));
  } catch (const ContractError& error) {
    return error.what();
  }
}

constexpr auto kAuto = TransportChoice::automatic;
constexpr auto kLocal = TransportChoice::local;
constexpr auto kShm = TransportChoice::shm;
constexpr auto kGloo = TransportChoice::gloo;
constexpr auto kNccl = TransportChoice::nccl;

TEST(TransportChoice, IsLocalOnTheProcessorAndWhereReplicasShareAGpu) {
  EXPECT_EQ(choose_transport(execution({"cpu", "cpu"}, kAuto)), kLocal);
  EXPECT_EQ(choose_transport(execution({"cuda:0", "cuda:0"}, kAuto)), kLocal);
  EXPECT_EQ(choose_transport(execution({"cuda:0", "cuda:1", "cuda:0"}, kAuto)), kLocal);
  EXPECT_EQ(choose_transport(execution({"cuda:0"}, kAuto)), kLocal);  // nobody to talk to
}

// Or all kernels of CUDA's libraries are loaded at each start, for nothing.
TEST(TransportChoice, MayBeNcclOnDifferentGpusAlone) {
  const auto may = [](const std::vector<std::string>& devices, TransportChoice choice) {
    return may_meet_over_nccl(choice, execution(devices, choice).devices);
  };
  EXPECT_TRUE(may({"cuda:0", "cuda:1"}, kAuto));
  EXPECT_TRUE(may({"cuda:0", "cuda:1"}, kNccl));
  EXPECT_FALSE(may({"cuda:0", "cuda:1"}, kLocal));
  EXPECT_FALSE(may({"cuda:0", "cuda:0"}, kAuto));
  EXPECT_FALSE(may({"cuda:0"}, kAuto));
  EXPECT_FALSE(may({"cpu:0", "cpu:1"}, kAuto));
}

TEST(TransportChoice, IsNcclForAGpuEachWhereItCanBeOpened) {
  const TransportChoice expected = comm::nccl_version().empty() ? kLocal : kNccl;
  EXPECT_EQ(choose_transport(execution({"cuda:0", "cuda:1"}, kAuto)), expected);
  // By what the text means: a model in one stage may name it.
  Execution named = execution({"cuda:0", "cuda:1"}, kAuto);
  for (const auto& [stages, choice] :
       {std::pair{"1", expected}, std::pair{"conv1..fc2", expected}, std::pair{"2", kLocal},
        std::pair{"conv1,fc1..fc2", kLocal}}) {
    named.stages = stages;
    EXPECT_EQ(choose_transport(named), choice) << stages;
  }
}

TEST(TransportChoice, FollowsTheUser) {
  EXPECT_EQ(choose_transport(execution({"cuda:0", "cuda:1"}, kLocal)), kLocal);
  EXPECT_EQ(choose_transport(execution({"cuda:0", "cuda:1"}, kNccl)), kNccl);
  EXPECT_EQ(choose_transport(execution({"cuda:0"}, kNccl)), kNccl);
}

TEST(TransportChoice, IsLocalForWhatReachesOtherReplicasMemory) {
  for (const char* sync : {"one-shot", "two-shot"}) {
    EXPECT_EQ(choose_transport(execution({"cuda:0", "cuda:1"}, kAuto, sync)), kLocal);
    EXPECT_EQ(choose_transport(execution({"cpu", "cpu"}, kLocal, sync)), kLocal);
    const std::string why = std::string("--sync ") + sync +
                            " needs replicas that reach each other's memory: the threads of one "
                            "process with --transport local, or processes on processors with "
                            "--transport shm; choose another --sync, ring say";
    EXPECT_EQ(refusal(execution({"cuda:0", "cuda:1"}, kNccl, sync)), why);
    EXPECT_EQ(refusal(in_processes({"cuda:0"}, kAuto, sync)), why);
    EXPECT_EQ(refusal(in_processes({"cpu", "cpu"}, kGloo, sync)), why);
    EXPECT_EQ(choose_transport(in_processes({"cpu", "cpu"}, kAuto, sync)), kShm);
  }
}

TEST(TransportChoice, FollowsTheStrategy) {
  for (const char* sync : {"nccl", "library"}) {
    EXPECT_EQ(choose_transport(execution({"cuda:0", "cuda:1"}, kAuto, sync)), kNccl);
    EXPECT_EQ(choose_transport(execution({"cuda:0"}, kAuto, sync)), kNccl);
  }
}

TEST(TransportChoice, IsNcclForGpusOfSeveralProcesses) {
  EXPECT_EQ(choose_transport(in_processes({"cuda:0"}, kAuto)), kNccl);
  EXPECT_THROW(choose_transport(in_processes({"cuda:0"}, kLocal)), ContractError);
  EXPECT_THROW(choose_transport(in_processes({"cuda:0", "cuda:0"}, kAuto)), ContractError);
}

TEST(TransportChoice, IsSharedMemoryForProcessorsOfSeveralProcesses) {
  EXPECT_EQ(choose_transport(in_processes({"cpu", "cpu"}, kAuto)), kShm);
  EXPECT_EQ(choose_transport(in_processes({"cpu"}, kShm)), kShm);
  EXPECT_EQ(choose_transport(in_processes({"cpu"}, kGloo)), kGloo);
  EXPECT_EQ(refusal(in_processes({"cpu"}, kLocal)),
            "--transport local joins the replicas of one process; several processes need "
            "--transport shm, or nccl for GPUs");
  for (const auto transport : {kShm, kGloo}) {
    const std::string why = std::string("--transport ") + name_of(transport) +
                            " joins several processes, with --processes, on processors; use "
                            "--transport auto";
    EXPECT_EQ(refusal(execution({"cpu", "cpu"}, transport)), why);
    EXPECT_EQ(refusal(in_processes({"cuda:0"}, transport)), why);
    EXPECT_EQ(process_transport(in_processes({"cpu"}, transport)),
              transport == kShm ? comm::ProcessTransport::shm : comm::ProcessTransport::gloo);
    EXPECT_EQ(transport_named(name_of(transport)), transport);
  }
}

TEST(TransportChoice, LeavesItToTheMachinesWhereNobodyNamesOne) {
  Execution open = in_processes({"cpu"}, kAuto);
  open.any_transport = true;
  open.transport = choose_transport(open);
  EXPECT_EQ(open.transport, kShm);
  EXPECT_EQ(process_transport(open), comm::ProcessTransport::automatic);
}

TEST(TransportChoice, StaysOnceItIsDecided) {
  Execution open = execution({"cpu", "cpu"}, kAuto, "auto");
  open.table = {{2, 0, "tree"}};
  open.in_processes = true;
  for (int time = 0; time < 2; ++time) {
    open = decided(open);
    EXPECT_EQ(open.transport, kShm);
    EXPECT_EQ(look_up(open.table, 2, 1), "tree");
  }
  open.in_processes = false;
  EXPECT_THROW(decided(open), ContractError);
}

TEST(TransportChoice, IsGlooForItsOwnSumsBetweenProcessesOfOneReplica) {
  EXPECT_EQ(choose_transport(in_processes({"cpu"}, kAuto, "gloo")), kGloo);
  EXPECT_EQ(choose_transport(in_processes({"cpu"}, kGloo, "gloo")), kGloo);
  EXPECT_EQ(choose_transport(in_processes({"cpu"}, kGloo, "library")), kGloo);
  EXPECT_EQ(choose_transport(in_processes({"cpu"}, kAuto, "library")), kGloo);
  const std::string why = "--sync gloo needs --transport gloo with one replica in each process";
  EXPECT_EQ(refusal(execution({"cpu"}, kAuto, "gloo")), why);
  EXPECT_EQ(refusal(in_processes({"cpu", "cpu"}, kAuto, "gloo")), why);
  EXPECT_EQ(refusal(in_processes({"cpu", "cpu"}, kGloo, "gloo")), why);
  EXPECT_EQ(refusal(in_processes({"cpu"}, kShm, "gloo")), why);
  EXPECT_EQ(refusal(execution({"cpu"}, kLocal, "gloo")), why);
  EXPECT_EQ(refusal(in_processes({"cuda:0"}, kNccl, "gloo")), why);
  EXPECT_EQ(refusal(in_processes({"cuda:0"}, kAuto, "gloo")), why);
  EXPECT_EQ(refusal(in_processes({"cpu"}, kGloo, "nccl")), "--sync nccl needs --transport nccl");
}

TEST(TransportChoice, SaysInOneLineWhatCannotBe) {
  EXPECT_EQ(refusal(execution({"cpu", "cpu"}, kNccl)),
            "--transport nccl is for GPUs; use --device cuda");
  EXPECT_EQ(refusal(execution({"cpu", "cpu"}, kAuto, "nccl")),
            "--sync nccl is for GPUs; use --device cuda");
  EXPECT_EQ(refusal(execution({"cpu", "cpu"}, kLocal, "library")),
            "--sync library needs --transport nccl, or gloo or mpi with one replica in "
            "each process");
  EXPECT_EQ(refusal(execution({"cuda:0", "cuda:1"}, kLocal, "nccl")),
            "--sync nccl needs --transport nccl");
  EXPECT_EQ(refusal(execution({"cuda:1", "cuda:1"}, kNccl)),
            "--transport nccl needs a GPU for each replica, and cuda:1 has several; use "
            "--transport local and another --sync than NCCL's");
  EXPECT_EQ(refusal(execution({"cpu", "cuda:1"}, kAuto)),
            "all replicas run on devices of one kind, not on cpu:0 and cuda:1");
}

}  // namespace
}  // namespace ringlet::train
