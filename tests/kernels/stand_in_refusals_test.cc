// What CUDA refuses, the stand-in for GPUs refuses too: of the wrong GPU, while a stream is
// captured, without memory.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/device.h"
#include "kernels/elementwise.h"
#include "kernels/memory.h"
#include "tests/cuda_stand_in/stand_in.h"

namespace ringlet {
namespace {

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* said = std::getenv(name)) before_ = said;  // NOLINT(concurrency-mt-unsafe)
    setenv(name, value, 1);                                    // NOLINT(concurrency-mt-unsafe)
  }
  ~Variable() {
    if (before_) {
      setenv(name_, before_->c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    } else {
      unsetenv(name_);  // NOLINT(concurrency-mt-unsafe)
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

/// A stream and an event of each of two GPUs; GPU 0 is current.
class CudaStandInRefusals : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int gpu = 1; gpu >= 0; --gpu) {
      cudaSetDevice(gpu);
      cudaStreamCreateWithFlags(&streams_[gpu], cudaStreamNonBlocking);
      cudaEventCreate(&events_[gpu]);
    }
    cudaMalloc(&number_, sizeof(float));
  }
  void TearDown() override {
    cudaGetLastError();
    cudaFree(number_);
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
    for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
  }

  /// What the call gives while the stream of GPU 0 is captured, and then the end of the capture.
  std::pair<cudaError_t, cudaError_t> in_capture(const std::function<cudaError_t()>& call,
                                                 cudaStreamCaptureMode mode) {
    cudaStreamBeginCapture(streams_[0], mode);
    cudaEventRecord(events_[0], streams_[0]);
    const cudaError_t called = call();
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(streams_[0], &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();
    return {called, ended};
  }
  void expect_broken(const std::function<cudaError_t()>& call,
                     cudaError_t error = cudaErrorStreamCaptureUnsupported,
                     cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) {
    const auto [called, ended] = in_capture(call, mode);
    EXPECT_EQ(called, error);
    EXPECT_EQ(ended, cudaErrorStreamCaptureInvalidated);
  }
  void expect_fine(const std::function<cudaError_t()>& call, cudaStreamCaptureMode mode) {
    const auto [called, ended] = in_capture(call, mode);
    EXPECT_EQ(called, cudaSuccess);
    EXPECT_EQ(ended, cudaSuccess);
  }

  const Variable gpus_{"RINGLET_STAND_IN_GPUS", "2"};
  cudaStream_t streams_[2] = {};
  cudaEvent_t events_[2] = {};
  void* number_ = nullptr;
};

cudaError_t in_another_thread(const std::function<cudaError_t()>& call) {
  cudaError_t result = cudaSuccess;
  std::thread([&] { result = call(); }).join();
  return result;
}

TEST_F(CudaStandInRefusals, ALaunchOnAStreamOfAnotherGpu) {
  stand_in::enqueue(streams_[1], "add", [] {});
  EXPECT_STREQ(cudaGetErrorString(cudaGetLastError()),
               "add is launched on a stream of GPU 1 while GPU 0 is current");
  cudaSetDevice(1);
  stand_in::enqueue(streams_[1], "add", [] {});
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(number_, 0, sizeof(float), streams_[0]), cudaSuccess);  // no launch
  cudaSetDevice(0);
}

TEST_F(CudaStandInRefusals, NoLaunchOfOurOwn) {
  const auto first = open_device({DeviceKind::cuda, 0});
  const auto second = open_device({DeviceKind::cuda, 1});
  const Tensor x(*first, {4}), y(*second, {4});
  EXPECT_NO_THROW(fill(first->compute(), 1, x));
  EXPECT_NO_THROW(fill(second->compute(), 2, y));
  EXPECT_NO_THROW(fill(first->compute(), 3, x));
}

TEST_F(CudaStandInRefusals, ARecordOfAnEventOfAnotherGpu) {
  EXPECT_EQ(cudaEventRecord(events_[0], streams_[1]), cudaErrorInvalidResourceHandle);
  EXPECT_STREQ(cudaGetErrorString(cudaGetLastError()),
               "an event of GPU 0 is recorded on a stream of GPU 1");
  EXPECT_EQ(cudaEventRecord(events_[1], streams_[1]), cudaSuccess);  // whichever is current
  EXPECT_EQ(cudaStreamWaitEvent(streams_[0], events_[1], 0), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(streams_[0]), cudaSuccess);
}

TEST_F(CudaStandInRefusals, TimesBetweenGpusAndBeforeTheirEnd) {
  float milliseconds = -1;
  cudaEventRecord(events_[0], streams_[0]);
  cudaEventRecord(events_[1], streams_[1]);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, events_[0], events_[0]), cudaErrorNotReady);
  cudaStreamSynchronize(streams_[0]);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, events_[0], events_[1]),
            cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, events_[0], events_[0]), cudaSuccess);
  EXPECT_EQ(milliseconds, 0);
}

TEST_F(CudaStandInRefusals, QuestionsAboutAStreamThatIsCaptured) {
  const auto relaxed = cudaStreamCaptureModeRelaxed;
  const cudaError_t unsupported = cudaErrorStreamCaptureUnsupported;
  for (const auto& call : {cudaStreamSynchronize, cudaStreamQuery}) {
    const auto asks = [&] { return call(streams_[0]); };
    expect_broken(asks);
    expect_broken(asks, unsupported, relaxed);
    expect_broken([&] { return in_another_thread(asks); });
  }
  for (const auto& call : {cudaEventSynchronize, cudaEventQuery}) {
    expect_broken([&] { return call(events_[0]); }, cudaErrorCapturedEvent, relaxed);
  }
  expect_broken(cudaDeviceSynchronize, unsupported, relaxed);
  expect_broken([] { return in_another_thread(cudaDeviceSynchronize); });
}

// Of what is not captured. Who captures in relaxed mode may; where anybody does in global mode,
// nobody may.
TEST_F(CudaStandInRefusals, QuestionsOfAThreadThatCaptures) {
  cudaStream_t apart = nullptr;
  cudaEvent_t reached = nullptr;
  cudaStreamCreateWithFlags(&apart, cudaStreamNonBlocking);
  cudaEventCreate(&reached);
  const std::vector<std::function<cudaError_t()>> calls{
      [&] { return cudaStreamSynchronize(apart); }, [&] { return cudaStreamQuery(apart); },
      [&] { return cudaEventSynchronize(reached); }, [&] { return cudaEventQuery(reached); },
      [] {
        void* address = nullptr;
        const cudaError_t result = cudaMalloc(&address, 1);
        return result == cudaSuccess ? cudaFree(address) : result;
      }};
  for (const auto& call : calls) {
    const auto elsewhere = [&] { return in_another_thread(call); };
    expect_broken(call);
    expect_fine(elsewhere, cudaStreamCaptureModeThreadLocal);
    expect_fine(call, cudaStreamCaptureModeRelaxed);
    expect_broken(elsewhere, cudaErrorStreamCaptureUnsupported, cudaStreamCaptureModeGlobal);
  }
  cudaEventDestroy(reached);
  cudaStreamDestroy(apart);
}

TEST_F(CudaStandInRefusals, CopiesOfPageableMemoryInACapture) {
  float pageable = 0;
  void* pinned = nullptr;
  cudaHostAlloc(&pinned, sizeof(float), cudaHostAllocPortable);
  const auto copies = [this](void* host, cudaMemcpyKind kind) {
    const bool up = kind == cudaMemcpyHostToDevice;
    return [=, this] {
      return cudaMemcpyAsync(up ? number_ : host, up ? host : number_, sizeof(float), kind,
                             streams_[0]);
    };
  };
  for (const cudaMemcpyKind kind : {cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost}) {
    expect_broken(copies(&pageable, kind));
    expect_fine(copies(pinned, kind), cudaStreamCaptureModeThreadLocal);
  }
  cudaFreeHost(pinned);
}

TEST_F(CudaStandInRefusals, LaunchesIntoACaptureThatIsBroken) {
  expect_broken([this] {
    cudaStreamQuery(streams_[0]);
    cudaGetLastError();
    EXPECT_EQ(cudaMemsetAsync(number_, 0, sizeof(float), streams_[0]),
              cudaErrorStreamCaptureInvalidated);
    return cudaErrorStreamCaptureUnsupported;
  });
}

TEST_F(CudaStandInRefusals, MemoryThatAGpuHasNot) {
  const Variable memory("RINGLET_STAND_IN_MEMORY", "2");
  std::size_t before = 0, free = 0, total = 0;
  EXPECT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
  EXPECT_EQ(total, std::size_t{2} << 20);
  void* address = nullptr;
  EXPECT_EQ(cudaMalloc(&address, before + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  ASSERT_EQ(cudaMalloc(&address, std::size_t{1} << 20), cudaSuccess);
  cudaMemGetInfo(&free, &total);
  EXPECT_EQ(free, before - (std::size_t{1} << 20));
  cudaSetDevice(1);  // each has its own
  cudaMemGetInfo(&free, &total);
  EXPECT_EQ(free, total);
  cudaSetDevice(0);
  cudaFree(address);
  const auto device = open_device({DeviceKind::cuda, 0});
  EXPECT_THROW(Tensor(*device, {std::int64_t{1} << 20}), OutOfMemoryError);
}

/// Adds one in work of that GPU.
void add_one(int gpu, cudaStream_t stream, float* number) {
  cudaSetDevice(gpu);
  stand_in::enqueue(stream, "add", [number] { ++*number; });
  cudaStreamSynchronize(stream);
  cudaSetDevice(0);
}

using CudaStandInMemory = CudaStandInRefusals;

TEST_F(CudaStandInMemory, IsNotTheHosts) {
  const auto* number = static_cast<volatile float*>(number_);
  EXPECT_DEATH((void)*number, "stand-in: the host touches memory of GPU 0");
}

TEST_F(CudaStandInMemory, IsItsOwnGpusUntilAnotherMayReachIt) {
  auto* number = static_cast<float*>(number_);
  float found = -1;
  cudaMemsetAsync(number, 0, sizeof *number, streams_[0]);
  cudaStreamSynchronize(streams_[0]);
  add_one(0, streams_[0], number);
  EXPECT_DEATH(add_one(1, streams_[1], number), "does not reach: of GPU 0");
  cudaSetDevice(1);
  ASSERT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaSuccess);
  add_one(1, streams_[1], number);
  cudaMemcpyAsync(&found, number, sizeof found, cudaMemcpyDeviceToHost, streams_[1]);
  EXPECT_EQ(found, 2);
  cudaSetDevice(1);
  cudaDeviceDisablePeerAccess(0);
  cudaSetDevice(0);
}

TEST_F(CudaStandInMemory, IsCopiedBetweenGpusThatDoNotReachEachOther) {
  void* other = nullptr;
  float found = -1;
  cudaSetDevice(1);
  cudaMalloc(&other, sizeof found);
  cudaSetDevice(0);
  cudaMemsetAsync(number_, 0, sizeof found, streams_[0]);
  cudaMemcpyPeerAsync(other, 1, number_, 0, sizeof found, streams_[0]);
  cudaMemcpyAsync(&found, other, sizeof found, cudaMemcpyDeviceToHost, streams_[0]);
  EXPECT_EQ(found, 0);
  cudaFree(other);
}

TEST_F(CudaStandInMemory, EndsWhereItEnds) {
  float pageable[2] = {};
  EXPECT_EQ(
      cudaMemcpyAsync(number_, pageable, sizeof pageable, cudaMemcpyHostToDevice, streams_[0]),
      cudaErrorInvalidValue);
  EXPECT_EQ(
      cudaMemcpyAsync(pageable + 1, pageable, sizeof(float), cudaMemcpyDeviceToHost, streams_[0]),
      cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemsetAsync(pageable, 0, sizeof(float), streams_[0]), cudaErrorInvalidValue);
}

TEST_F(CudaStandInMemory, IsLostWithAKernelThatFails) {
  const auto fails = [this] {
    stand_in::break_devices("a kernel failed");
    void* address = nullptr;
    cudaGraph_t graph = nullptr;
    std::size_t free = 0, total = 0;
    const cudaError_t results[] = {cudaMalloc(&address, 1),
                                   cudaFree(number_),
                                   cudaMemGetInfo(&free, &total),
                                   cudaStreamSynchronize(streams_[0]),
                                   cudaStreamQuery(streams_[0]),
                                   cudaEventRecord(events_[0], streams_[0]),
                                   cudaEventQuery(events_[0]),
                                   cudaEventCreate(&events_[0]),
                                   cudaDeviceSynchronize(),
                                   cudaMemsetAsync(number_, 0, 1, streams_[0]),
                                   cudaStreamEndCapture(streams_[0], &graph),
                                   cudaGetLastError(),
                                   cudaGetLastError()};
    for (const cudaError_t result : results) {
      if (result != cudaErrorIllegalAddress) std::_Exit(1);
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(fails(), ::testing::ExitedWithCode(0), "stand-in: a kernel failed");
}

}  // namespace
}  // namespace ringlet
