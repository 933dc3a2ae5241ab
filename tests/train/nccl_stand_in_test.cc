// What the stand-in's NCCL takes and refuses (tests/cuda_stand_in/nccl.cc), called as Ringlet calls
// it: two ranks, threads with a GPU each.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>

#include "comm/transport/nccl/nccl_library.h"
#include "kernels/cuda_devices.h"

namespace ringlet::train {
namespace {

/// A rank: its communicator, its stream, and so many numbers of its GPU.
class Rank {
 public:
  static constexpr std::size_t kNumbers = 1000;

  Rank(int rank, const ncclUniqueId& id, bool blocking) : nccl_(comm::nccl_library()) {
    cudaSetDevice(rank);
    cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
    nccl_.ncclMemAlloc(&numbers_, kNumbers * sizeof(float));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = blocking ? 1 : 0;
    EXPECT_EQ(settled(nccl_.ncclCommInitRankConfig(&comm_, 2, id, rank, &config)), ncclSuccess);
  }
  ~Rank() {
    nccl_.ncclCommAbort(comm_);
    cudaStreamSynchronize(stream_);
    if (numbers_ != nullptr) nccl_.ncclMemFree(numbers_);
    cudaStreamDestroy(stream_);
    cudaGetLastError();
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  /// Of a group, or of its making: what it comes to.
  ncclResult_t settled(ncclResult_t result) const {
    while (result == ncclInProgress) {
      std::this_thread::yield();
      nccl_.ncclCommGetAsyncError(comm_, &result);
    }
    return result;
  }
  /// A sum as a group of its own: what ncclGroupEnd() gives, or the call before it.
  ncclResult_t sum(void* data, std::size_t count) const {
    nccl_.ncclGroupStart();
    const ncclResult_t called =
        nccl_.ncclAllReduce(data, data, count, ncclFloat32, ncclSum, comm_, stream_);
    const ncclResult_t ended = nccl_.ncclGroupEnd();
    return called != ncclSuccess ? called : ended;
  }
  /// Asks until the stream has come to its end: this rank's state then.
  ncclResult_t state_at_end() const {
    while (cudaStreamQuery(stream_) == cudaErrorNotReady) std::this_thread::yield();
    ncclResult_t state = ncclSuccess;
    nccl_.ncclCommGetAsyncError(comm_, &state);
    return state;
  }
  std::string why() const { return nccl_.ncclGetLastError(comm_); }
  void free_numbers() { nccl_.ncclMemFree(std::exchange(numbers_, nullptr)); }
  void* numbers() const { return numbers_; }
  cudaStream_t stream() const { return stream_; }

 private:
  const comm::NcclFunctions& nccl_;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  void* numbers_ = nullptr;
};

class CudaNcclStandIn : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() < 2) GTEST_SKIP() << "there are fewer than two GPUs";
  }
  static void on_ranks(const std::function<void(int, Rank&)>& play, bool blocking = false) {
    ncclUniqueId id{};
    ASSERT_EQ(comm::nccl_library().ncclGetUniqueId(&id), ncclSuccess);
    std::array<std::thread, 2> threads;
    for (int number = 0; number < 2; ++number) {
      threads[static_cast<std::size_t>(number)] = std::thread([&, number] {
        Rank rank(number, id, blocking);
        play(number, rank);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
};

TEST_F(CudaNcclStandIn, AGroupIsInProgressUntilItIsOnItsStream) {
  on_ranks([](int, const Rank& rank) {
    EXPECT_EQ(rank.sum(rank.numbers(), Rank::kNumbers), ncclInProgress);
    EXPECT_EQ(rank.settled(ncclInProgress), ncclSuccess);
    EXPECT_EQ(rank.state_at_end(), ncclSuccess);
  });
}

TEST_F(CudaNcclStandIn, ABlockingGroupIsOnItsStreamAtOnce) {
  const auto sums = [](int, const Rank& rank) {
    EXPECT_EQ(rank.sum(rank.numbers(), Rank::kNumbers), ncclSuccess);
    EXPECT_EQ(rank.state_at_end(), ncclSuccess);
  };
  on_ranks(sums, true);
}

TEST_F(CudaNcclStandIn, RefusesCountsThatDiffer) {
  on_ranks([](int number, const Rank& rank) {
    const std::size_t count = number == 0 ? 10 : 11;
    EXPECT_EQ(rank.settled(rank.sum(rank.numbers(), count)), ncclSuccess);
    EXPECT_EQ(rank.state_at_end(), ncclInvalidUsage);
    if (number == 0) {
      EXPECT_EQ(rank.why(),
                "rank 0: allreduce of 10 numbers (type 7, op 0, root -1), but rank 1 has "
                "allreduce of 11 numbers (type 7, op 0, root -1)");
    }
  });
}

TEST_F(CudaNcclStandIn, RefusesMemoryThatIsNotTheGpus) {
  on_ranks([](int, const Rank& rank) {
    float number = 0;
    EXPECT_EQ(rank.sum(&number, 1), ncclInvalidArgument);
    EXPECT_EQ(rank.sum(rank.numbers(), Rank::kNumbers + 1), ncclInvalidArgument);
  });
}

TEST_F(CudaNcclStandIn, RefusesMemoryThatWasFreedSince) {
  on_ranks([](int, Rank& rank) {
    EXPECT_EQ(rank.settled(rank.sum(rank.numbers(), 1)), ncclSuccess);
    rank.free_numbers();  // waits for nothing
    EXPECT_EQ(rank.state_at_end(), ncclInvalidUsage);
    EXPECT_NE(rank.why().find("memory that was freed"), std::string::npos) << rank.why();
  });
}

// Of this rank's stream, which another thread's calls come to.
TEST_F(CudaNcclStandIn, AGroupOfAnotherThreadIsCaptured) {
  on_ranks([](int, const Rank& rank) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    cudaMemsetAsync(rank.numbers(), 0, sizeof(float), rank.stream());
    cudaStreamBeginCapture(rank.stream(), cudaStreamCaptureModeThreadLocal);
    EXPECT_EQ(rank.settled(rank.sum(rank.numbers(), 1)), ncclSuccess);
    EXPECT_EQ(cudaStreamEndCapture(rank.stream(), &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    cudaGraphDestroy(graph);
    cudaGraphLaunch(executable, rank.stream());
    EXPECT_EQ(rank.state_at_end(), ncclSuccess);
    cudaGraphExecDestroy(executable);
  });
}

}  // namespace
}  // namespace ringlet::train
