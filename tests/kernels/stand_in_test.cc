// The stand-in for GPUs itself: that a graph with an edge too few gives wrong results there. And
// what our own calls leave behind on it.
#include "tests/cuda_stand_in/stand_in.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/branch.h"
#include "kernels/capture.h"
#include "kernels/conv2d.h"
#include "kernels/cuda/conv2d_graph.h"
#include "kernels/cuda/cublas_lt.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/device.h"
#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "kernels/l2_norm.h"
#include "kernels/linear.h"
#include "kernels/memory.h"
#include "tests/support/files.h"

namespace ringlet {
namespace {

/// y = x on a forked stream, then z = y on the first one, as a graph. A wait may be missing.
class CudaStandInGraph : public ::testing::Test {
 protected:
  void SetUp() override {
    cudaStreamCreateWithFlags(&main_, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&fork_, cudaStreamNonBlocking);
    for (cudaEvent_t& event : events_) cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    for (float*& number : numbers_) {
      cudaMalloc(reinterpret_cast<void**>(&number), sizeof *number);
      cudaMemsetAsync(number, 0, sizeof *number, main_);
    }
    cudaStreamSynchronize(main_);
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
      cudaMemcpyAsync(&found.emplace_back(), z, sizeof *z, cudaMemcpyDeviceToHost, main_);
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

/// What a second stream copies of each number that the first one writes, which writes -1 over it
/// next. It may wait for the copy. The host waits for the second stream alone.
class CudaStandInStreams : public CudaStandInGraph {
 protected:
  std::vector<float> copies(bool writer_waits) {
    const auto [x, y, z] = numbers_;
    std::vector<float> found;
    for (int i = 0; i < 6; ++i) {  // each way twice
      write(x, static_cast<float>(i));
      cudaEventRecord(events_[0], main_);
      cudaStreamWaitEvent(fork_, events_[0], 0);
      copy(fork_, y, x);
      cudaEventRecord(events_[1], fork_);
      if (writer_waits) cudaStreamWaitEvent(main_, events_[1], 0);
      write(x, -1);
      cudaMemcpyAsync(&found.emplace_back(), y, sizeof *y, cudaMemcpyDeviceToHost, fork_);
      cudaStreamSynchronize(main_);
    }
    return found;
  }

 private:
  void write(float* x, float value) {
    stand_in::enqueue(main_, "write", [x, value] { *x = value; });
  }
};

TEST_F(CudaStandInStreams, RunByTheirEvents) {
  EXPECT_EQ(copies(true), (std::vector<float>{0, 1, 2, 3, 4, 5}));
}

TEST_F(CudaStandInStreams, ShowAWriterThatDoesNotWait) {
  EXPECT_NE(copies(false), (std::vector<float>{0, 1, 2, 3, 4, 5}));
}

// CUDA tells of a failure once more with whatever is asked next. Who catches it may go on.
TEST(CudaStandIn, AFailureThatIsCaughtBlamesNoLaterLaunch) {
  EXPECT_THROW(check_cuda(cudaSetDevice(1000), "cudaSetDevice"), DeviceError);
  EXPECT_NO_THROW(check_launch("a kernel"));
}

/// How often cuDNN is asked for engines in the first call of a convolution with a ReLU.
std::ptrdiff_t searches_for_relu(const DeviceOptions& options, bool has_bias) {
  const auto device = open_device({DeviceKind::cuda, 0}, options);
  Stream& stream = device->compute();
  const Tensor x(*device, {2, 1, 4, 4}), w(*device, {3, 1, 2, 2}), b(*device, {3});
  const Tensor y(*device, {2, 3, 3, 3});
  for (const Tensor* tensor : {&x, &w, &b}) fill(stream, 1, *tensor);
  (void)stand_in::take_notes();
  conv2d_forward(stream, {}, x, w, has_bias ? ConstView(b) : ConstView(), Activation::relu, y);
  stream.synchronize();
  const std::vector<std::string> notes = stand_in::take_notes();
  return std::count(notes.begin(), notes.end(), "search");
}

// In plain f32 cuDNN has no engine for a ReLU without a bias. To look for one takes a fifth of a
// second for each shape.
TEST(CudaStandIn, HostMemoryThatIsNotThereIsTheHosts) {
  const auto device = open_device({DeviceKind::cuda, 0});
  constexpr std::int64_t kMore = std::int64_t{1} << 60;  // than any machine has
  EXPECT_EQ(ringlet::testing::message_of<OutOfMemoryError>([&] { device->allocate_host(kMore); }),
            "the host has no 1099511627776 MiB left; use a smaller batch");
}

// A GPU of compute capability 9.0 runs code for 8.0 as well, in which no kernel waits.
TEST(CudaStandIn, LaunchesNothingEarlyThatDoesNotWait) {
  const auto launches_early = [] {
    const auto device = open_device({DeviceKind::cuda, 0});
    return static_cast<CudaStream&>(device->compute()).launches_early(1);
  };
  EXPECT_TRUE(launches_early());
  setenv("RINGLET_STAND_IN_PTX", "80", 1);  // NOLINT(concurrency-mt-unsafe)
  EXPECT_FALSE(launches_early());
  unsetenv("RINGLET_STAND_IN_PTX");            // NOLINT(concurrency-mt-unsafe)
  setenv("RINGLET_EARLY_LAUNCHES", "off", 1);  // NOLINT(concurrency-mt-unsafe)
  EXPECT_FALSE(launches_early());
  unsetenv("RINGLET_EARLY_LAUNCHES");  // NOLINT(concurrency-mt-unsafe)
}

TEST(CudaStandIn, AReluWithoutABiasIsNotLookedForInVain) {
  EXPECT_EQ(searches_for_relu({}, false), 1);  // for the product alone
  EXPECT_EQ(searches_for_relu({.tf32 = true}, false), 1);
  EXPECT_EQ(searches_for_relu({}, true), 1);
}

// Both count the blocks of their only team. In the third launch one is halfway through when the
// other is, too.
TEST(CudaStandIn, SumsSideBySideCountTheirBlocksApart) {
  constexpr std::int64_t kCount = 1 << 16;
  constexpr float kRoot = 256;
  const auto device = open_device({DeviceKind::cuda, 0});
  Stream& stream = device->compute();
  const Tensor x(*device, {kCount}), norms(*device, {2});
  fill(stream, 1, x);
  const auto measure = [&] {
    {
      const Branch branch(stream, 1e9);
      l2_norm(stream, x, norms.view().slice(0, 1));
    }
    l2_norm(stream, x, norms.view().slice(1, 2));
    Branch::join(stream);
  };
  measure();  // as the step before a capture: memory grows
  const auto graph = capture(stream, measure);
  for (int launch = 0; launch < 6; ++launch) {
    fill(stream, 0, norms);
    stream.launch(*graph);
    std::vector<float> found(2);
    copy_to_host(stream, norms, found.data());
    EXPECT_EQ(found, (std::vector<float>{kRoot, kRoot})) << launch;
  }
}

TEST(CudaStandIn, ScratchMemoryIsAShareOfWhatIsFree) {
  const DeviceId gpu{DeviceKind::cuda, 0};
  const std::int64_t free = open_device(gpu, {})->free_bytes();
  ASSERT_GT(free, std::int64_t{4} << 30);
  EXPECT_EQ(open_device(gpu, {})->scratch_limit(), free / 16);
  EXPECT_EQ(open_device(gpu, {.deterministic = true})->scratch_limit(), 256 << 20);
}

/// y = x w of one row and one column, by cuBLASLt, or by cuDNN as a 1x1 convolution.
float product(const DeviceOptions& options, const std::vector<float>& x,
              const std::vector<float>& w, bool as_convolution) {
  const auto device = open_device({DeviceKind::cuda, 0}, options);
  Stream& stream = device->compute();
  const std::int64_t count = std::ssize(x);
  const Shape shape = as_convolution ? Shape{1, count, 1, 1} : Shape{1, count};
  const Tensor x_there(*device, shape), w_there(*device, shape);
  const Tensor y(*device, as_convolution ? Shape{1, 1, 1, 1} : Shape{1, 1});
  copy_from_host(stream, x.data(), x_there);
  copy_from_host(stream, w.data(), w_there);
  if (as_convolution) {
    conv2d_forward(stream, {}, x_there, w_there, {}, Activation::none, y);
  } else {
    linear_forward(stream, x_there, w_there, {}, Activation::none, y);
  }
  float result = 0;
  copy_to_host(stream, y, &result);
  stream.synchronize();
  return result;
}

TEST(CudaStandInProducts, RoundToTf32WhereThatIsAskedFor) {
  const float fine = 1 + 0x1p-12F, coarse = 1 + 0x1p-10F;
  for (const bool as_convolution : {false, true}) {
    EXPECT_EQ(product({}, {fine}, {1}, as_convolution), fine);
    EXPECT_EQ(product({.tf32 = true}, {fine}, {1}, as_convolution), 1);
    EXPECT_EQ(product({.tf32 = true}, {1}, {fine}, as_convolution), 1);
    EXPECT_EQ(product({.tf32 = true}, {coarse}, {1}, as_convolution), coarse);
  }
}

TEST(CudaStandInProducts, AreAddedUpInParts) {
  std::vector<float> x(256, 0x1p-24F);  // each alone is lost beside 1
  x[0] = 1;
  for (const bool as_convolution : {false, true}) {
    EXPECT_EQ(product({}, x, std::vector<float>(256, 1), as_convolution), 1 + 0x1p-17F);
  }
}

/// A product of a [8, 4] and b [4, 2], column-major, as somebody might say it to cuBLASLt.
struct SaidProduct {
  cudaDataType types = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  std::int64_t inner = 4, leading = 8;

  cublasStatus_t ask() const {
    const CublasLtFunctions& lt = cublas_lt();
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
    cublasLtMatmulPreference_t preference = nullptr;
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    const auto k = static_cast<std::uint64_t>(inner);
    lt.cublasLtMatmulDescCreate(&operation, compute, CUDA_R_32F);
    lt.cublasLtMatrixLayoutCreate(&a, types, 8, k, leading);
    lt.cublasLtMatrixLayoutCreate(&b, types, k, 2, inner);
    lt.cublasLtMatrixLayoutCreate(&d, types, 8, 2, 8);
    lt.cublasLtMatmulPreferenceCreate(&preference);
    const cublasStatus_t status = lt.cublasLtMatmulAlgoGetHeuristic(nullptr, operation, a, b, d, d,
                                                                    preference, 1, &result, &found);
    lt.cublasLtMatmulPreferenceDestroy(preference);
    for (cublasLtMatrixLayout_t layout : {a, b, d}) lt.cublasLtMatrixLayoutDestroy(layout);
    lt.cublasLtMatmulDescDestroy(operation);
    return status;
  }
};

TEST(CudaStandInProducts, AreRefusedWhereCublasRefusesThem) {
  EXPECT_EQ(SaidProduct{}.ask(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(SaidProduct{.compute = CUBLAS_COMPUTE_32F_FAST_TF32}.ask(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(SaidProduct{.types = CUDA_R_16BF}.ask(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(SaidProduct{.inner = 0}.ask(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(SaidProduct{.leading = 7}.ask(), CUBLAS_STATUS_INVALID_VALUE);
  const SaidProduct rounded{.types = CUDA_R_16BF, .compute = CUBLAS_COMPUTE_32F_FAST_TF32};
  EXPECT_EQ(rounded.ask(), CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST(CudaStandInProducts, HaveAttributesOfTheirSize) {
  const CublasLtFunctions& lt = cublas_lt();
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  lt.cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  lt.cublasLtMatmulPreferenceCreate(&preference);
  const std::int64_t wide = 1;
  EXPECT_EQ(
      lt.cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &wide, sizeof wide),
      CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(lt.cublasLtMatmulPreferenceSetAttribute(
                preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &wide, sizeof wide),
            CUBLAS_STATUS_INVALID_VALUE);
  lt.cublasLtMatmulPreferenceDestroy(preference);
  lt.cublasLtMatmulDescDestroy(operation);
}

/// Plans are those of the real cuDNN for an H100 (tests/cuda_stand_in/planner.h).
class CudaStandInPlanner : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = std::getenv(kVariable);
    setenv(kVariable, "cudnn", 1);
    ASSERT_EQ(cudnn().cudnnCreate(&target_.handle), CUDNN_STATUS_SUCCESS);
    key_.spec.padding = {1, 1};
    key_.x = key_.y = {128, 64, 32, 32};
    key_.w = {64, 64, 3, 3};
    key_.alignment = 16;
  }
  void TearDown() override {
    cudnn().cudnnDestroy(target_.handle);
    before_ == nullptr ? unsetenv(kVariable) : setenv(kVariable, "cudnn", 1);
  }

  static constexpr const char* kVariable = "RINGLET_STAND_IN_PLANNER";
  const char* before_ = nullptr;
  cudnn_graph::Target target_;
  cudnn_graph::Conv2dKey key_;
};

TEST_F(CudaStandInPlanner, RefusesShapesThatDoNotFit) {
  key_.y = {128, 64, 32, 31};
  EXPECT_THROW(cudnn_graph::Conv2dGraph(target_, key_), DeviceError);
}

TEST_F(CudaStandInPlanner, AnswersWithNotesAndScratchMemoryOfTheRealEngines) {
  const cudnn_graph::Conv2dGraph graph(target_, key_);
  std::string why_not;
  const auto plans = cudnn_graph::find_plans(target_, graph, std::vector{CUDNN_HEUR_MODE_A},
                                             {true, false, 1 << 30}, 1, why_not);
  ASSERT_EQ(plans.size(), 1U) << why_not;
  EXPECT_NE(cudnn_graph::numerical_notes(plans[0].engine_config) &
                (1U << CUDNN_NUMERICAL_NOTE_TENSOR_CORE),
            0U);
  EXPECT_GE(plans[0].workspace, key_.x.count() * 4);  // in nchw it transposes the images
}

// cuDNN itself proposes one without them first, which transposes all of the images.
TEST_F(CudaStandInPlanner, HasEnginesWithTensorCoresTakenFirst) {
  key_.spec = {};
  key_.spec.stride = {2, 2};
  key_.x = {256, 64, 56, 56};
  key_.y = {256, 128, 28, 28};
  key_.w = {128, 64, 1, 1};
  key_.dtype = DType::bf16;
  key_.layout = Layout::nhwc;
  const cudnn_graph::Conv2dGraph graph(target_, key_);
  std::string why_not;
  const auto plans = cudnn_graph::find_plans(target_, graph, std::vector{CUDNN_HEUR_MODE_A},
                                             {true, false, 1 << 30}, 1, why_not);
  ASSERT_EQ(plans.size(), 1U) << why_not;
  EXPECT_NE(cudnn_graph::numerical_notes(plans[0].engine_config) &
                (1U << CUDNN_NUMERICAL_NOTE_TENSOR_CORE),
            0U);
}

}  // namespace
}  // namespace ringlet
