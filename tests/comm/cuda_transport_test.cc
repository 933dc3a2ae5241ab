// The transports on real GPUs: late_transport_test.cc shows the same of a device that is made up.
// Skipped where there are no GPUs.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/transport/nccl/nccl_transport.h"
#include "kernels/cuda_devices.h"
#include "kernels/host_copy.h"
#include "kernels/memory.h"
#include "tests/comm/ranks.h"
#include "tests/support/gpu.h"

namespace ringlet::comm {
namespace {

using Values = std::vector<float>;

constexpr int kRounds = 5;

/// An integer, so that sums are exact; different for each rank, round and element.
Values values_of(int rank, int round, std::int64_t count) {
  Values values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] =
        static_cast<float>((i * 7 + static_cast<std::size_t>(rank * 131 + round * 17)) % 1009);
  }
  return values;
}

Values sum_of_ranks(int size, int round, std::int64_t count) {
  Values sum(static_cast<std::size_t>(count), 0.0F);
  for (int rank = 0; rank < size; ++rank) {
    const Values values = values_of(rank, round, count);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  }
  return sum;
}

/// Rounds of writing, summing and reading, on both streams of the device.
void sum_rounds(Device& device, Communicator& communicator, std::int64_t count) {
  Stream& compute = device.compute();
  Stream& communication = device.communication();
  const Tensor data(device, {count});
  const auto ready = device.make_event();
  const auto done = device.make_event();
  Values result(static_cast<std::size_t>(count));
  for (int round = 0; round < kRounds; ++round) {
    copy_from_host(compute, values_of(communicator.rank(), round, count).data(), data);
    compute.record(*ready);
    communication.wait(*ready);
    communicator.all_reduce(communication, data, "gradients");
    communication.record(*done);
    compute.wait(*done);
    copy_to_host(compute, data, result.data());
    ASSERT_EQ(result, sum_of_ranks(communicator.size(), round, count))
        << communicator.strategy() << ", " << communicator.size() << " ranks, " << count
        << " values, round " << round;
  }
  communicator.require_identical(communication, data, "sums");
}

class CudaTransport : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "there is no GPU";
  }
};

/// Replicas on one GPU, or on all of them in turn.
void sum_locally(const std::string& strategy, int gpus) {
  for (const int size : {1, 2, 3, 4}) {
    LocalGroup group(size);
    run_ranks(size, [&](int rank) {
      const auto device = open_device({DeviceKind::cuda, rank % gpus});
      Communicator communicator(group.transport(rank),
                                {.strategy = strategy, .timeout_seconds = 30});
      for (const std::int64_t count : {1, 7, 1001, 100000}) {
        sum_rounds(*device, communicator, count);
      }
    });
  }
}

TEST_P(CudaTransport, SumsLocallyOnOneGpu) { sum_locally(GetParam(), 1); }

TEST_P(CudaTransport, SumsLocallyBetweenGpus) {
  if (cuda_device_count() < 2) GTEST_SKIP() << "there is one GPU";
  sum_locally(GetParam(), cuda_device_count());
}

// Every other rank computes on processors.
TEST_P(CudaTransport, SumsBetweenAGpuAndProcessors) {
  if (Strategies().needs_of(GetParam()) == Needs::peer_access) {
    GTEST_SKIP() << "a GPU does not reach such memory";
  }
  for (const int size : {2, 3, 4}) {
    for (const int first : {0, 1}) {
      std::vector<DeviceKind> kinds;
      for (int rank = 0; rank < size; ++rank) {
        kinds.push_back(rank % 2 == first ? DeviceKind::cuda : DeviceKind::cpu);
      }
      LocalGroup group(size, {.in_reach = false, .kinds = kinds});
      run_ranks(size, [&](int rank) {
        const auto device = open_device({kinds[static_cast<std::size_t>(rank)], 0});
        Communicator communicator(group.transport(rank),
                                  {.strategy = GetParam(), .timeout_seconds = 30});
        for (const std::int64_t count : {1, 7, 1001, 100000}) {
          sum_rounds(*device, communicator, count);
        }
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, CudaTransport, testing::ValuesIn(strategies_of_threads()),
                         [](const auto& test) { return identifier(test.param); });

class CudaNccl : public CudaTransport {
 protected:
  void SetUp() override {
    CudaTransport::SetUp();
    if (!IsSkipped() && nccl_version().empty()) GTEST_SKIP() << "there is no NCCL";
  }
};

TEST_P(CudaNccl, SumsWithAGpuForEachRank) {
  const int size = cuda_device_count();
  LocalGroup group(size);
  const auto nccl = open_nccl();
  run_ranks(size, [&](int rank) {
    const auto device = open_device({DeviceKind::cuda, rank});
    const auto transport = nccl->join(group.transport(rank), device->communication());
    Communicator communicator(*transport, {.strategy = GetParam(), .timeout_seconds = 30});
    for (const std::int64_t count : {1, 7, 1001, 100000}) sum_rounds(*device, communicator, count);
    EXPECT_EQ(
        communicator.gather_text(device->communication(), std::to_string(rank), "ranks").size(),
        static_cast<std::size_t>(size));
  });
}

// A kernel of NCCL's that waits for a rank which never comes holds its stream for ever.
TEST_P(CudaNccl, EndsWhatHangs) {
  const int size = cuda_device_count();
  if (size < 2) GTEST_SKIP() << "there is one GPU";
  LocalGroup group(size);
  const auto nccl = open_nccl();
  const auto messages = messages_of_ranks(size, [&](int rank) {
    const auto device = open_device({DeviceKind::cuda, rank});
    const auto transport = nccl->join(group.transport(rank), device->communication());
    Communicator communicator(*transport, {.strategy = GetParam(), .timeout_seconds = 10});
    const Tensor data(*device, {1000});
    communicator.all_reduce(device->communication(), data, "first");  // connects
    communicator.barrier(device->communication(), "together");
    transport->set_timeout(1);
    if (rank == 1) {
      communicator.set_activity("data loading");
      while (!transport->root_cause()) std::this_thread::yield();
      return;
    }
    communicator.all_reduce(device->communication(), data, "second");
    device->communication().synchronize();
    communicator.require_alive();
  });
  ASSERT_TRUE(group.root_cause());
  EXPECT_TRUE(contains(group.root_cause()->message, "rank 1 never entered #3 all_reduce second"))
      << group.root_cause()->message;
  EXPECT_EQ(messages[1], "");
  EXPECT_NE(messages[0], "");
}

INSTANTIATE_TEST_SUITE_P(Strategies, CudaNccl,
                         testing::Values("naive", "ring", "doubling", "nccl", "library"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace ringlet::comm
