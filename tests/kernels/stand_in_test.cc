// The stand-in for GPUs itself: that a graph with an edge too few gives wrong results there. And
// what our own calls leave behind on it.
#include "tests/cuda_stand_in/stand_in.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/cuda_error.h"

namespace ringlet {
namespace {

/// y = x on a forked stream, then z = y on the first one, as a graph. A wait may be missing.
class CudaStandInGraph : public testing::Test {
 protected:
  void SetUp() override {
    cudaStreamCreateWithFlags(&main_, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&fork_, cudaStreamNonBlocking);
    for (cudaEvent_t& event : events_) cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    for (float*& number : numbers_) {
      cudaMalloc(reinterpret_cast<void**>(&number), sizeof *number);
      *number = 0;
    }
  }
  void TearDown() override {
    for (float* number : numbers_) cudaFree(number);
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
    cudaStreamDestroy(fork_);
    cudaStreamDestroy(main_);
  }

  void add_one(float* x) {
    stand_in::enqueue(main_, "add", [x] { ++*x; });
  }
  void copy(cudaStream_t stream, float* to, const float* from) {
    cudaMemcpyAsync(to, from, sizeof *to, cudaMemcpyDeviceToDevice, stream);
  }

  /// z of so many launches, each of which adds one to x.
  std::vector<float> launches(int count, bool fork_waits, bool join_waits) {
    const auto [x, y, z] = numbers_;
    cudaStreamBeginCapture(main_, cudaStreamCaptureModeThreadLocal);
    cudaEventRecord(events_[0], main_);
    add_one(x);
    if (fork_waits) cudaEventRecord(events_[0], main_);
    cudaStreamWaitEvent(fork_, events_[0], 0);
    cudaEventRecord(events_[1], fork_);
    copy(fork_, y, x);
    if (join_waits) cudaEventRecord(events_[1], fork_);
    cudaStreamWaitEvent(main_, events_[1], 0);
    copy(main_, z, y);
    cudaEventRecord(events_[2], fork_);
    cudaStreamWaitEvent(main_, events_[2], 0);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(main_, &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    cudaGraphDestroy(graph);
    std::vector<float> found;
    for (int i = 0; i < count; ++i) {
      cudaGraphLaunch(executable, main_);
      cudaStreamSynchronize(main_);
      found.push_back(*z);
    }
    cudaGraphExecDestroy(executable);
    return found;
  }

  cudaStream_t main_ = nullptr, fork_ = nullptr;
  cudaEvent_t events_[3] = {};
  float* numbers_[3] = {};
};

const std::vector<float> kRight{1, 2, 3, 4};

TEST_F(CudaStandInGraph, RunsByItsEdges) { EXPECT_EQ(launches(4, true, true), kRight); }

TEST_F(CudaStandInGraph, ShowsAForkThatDoesNotWait) { EXPECT_NE(launches(4, false, true), kRight); }

TEST_F(CudaStandInGraph, ShowsAJoinThatDoesNotWait) { EXPECT_NE(launches(4, true, false), kRight); }

TEST_F(CudaStandInGraph, RefusesAForkThatDoesNotJoin) {
  float* const x = numbers_[0];
  cudaStreamBeginCapture(main_, cudaStreamCaptureModeThreadLocal);
  cudaEventRecord(events_[0], main_);
  cudaStreamWaitEvent(fork_, events_[0], 0);
  copy(fork_, numbers_[1], x);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(main_, &graph), cudaErrorStreamCaptureUnjoined);
  cudaGetLastError();
}

// CUDA tells of a failure once more with whatever is asked next. Who catches it may go on.
TEST(CudaStandIn, AFailureThatIsCaughtBlamesNoLaterLaunch) {
  EXPECT_THROW(check_cuda(cudaSetDevice(1000), "cudaSetDevice"), DeviceError);
  EXPECT_NO_THROW(check_launch("a kernel"));
}

}  // namespace
}  // namespace ringlet
