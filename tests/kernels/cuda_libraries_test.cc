// What cuBLASLt and cuDNN tell on a machine that has the libraries and no GPU.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/shared_library.h"
#include "kernels/conv2d.h"
#include "kernels/cuda/autotune.h"
#include "kernels/cuda/cublas_descriptors.h"
#include "kernels/cuda/cudnn.h"
#include "kernels/cuda/libraries.h"
#include "kernels/cuda/plan_cache.h"
#include "kernels/cuda/views.h"
#include "kernels/cuda_devices.h"
#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "kernels/linear.h"
#include "kernels/memory.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/harness.h"
#include "tests/support/tensors.h"

namespace ringlet::test {
namespace {

/// What `call` throws; "" if it does not.
template <class F>
std::string message_of(F call) {
  try {
    call();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "";
}

TEST(SharedLibrary, NamesWhatIsMissingAndTheRemedy) {
  const std::string no_file =
      message_of([] { SharedLibrary("libnot_there.so.7", "install it from there"); });
  EXPECT_NE(no_file.find("libnot_there.so.7"), std::string::npos) << no_file;
  EXPECT_NE(no_file.find("; install it from there"), std::string::npos) << no_file;
  const SharedLibrary libc("libc.so.6", "");
  const std::string no_function = message_of([&] { (void)libc.function<int()>("no_function"); });
  EXPECT_NE(no_function.find("libc.so.6 has no function no_function"), std::string::npos);
}

TEST(CudaLibraries, HaveAllFunctionsAndTheVersionOfTheHeaders) {
  EXPECT_EQ(message_of([] { (void)cudnn(); }), "");
  EXPECT_EQ(message_of([] { (void)cublas_lt(); }), "");
  EXPECT_TRUE(cudnn_version().starts_with(std::to_string(CUDNN_MAJOR) + ".")) << cudnn_version();
  EXPECT_TRUE(cublas_version().starts_with(std::to_string(CUBLAS_VER_MAJOR) + "."))
      << cublas_version();
}

TEST(CudaLibraries, SayWhatFailedWithoutADriver) {
  if (cuda_device_count() > 0) GTEST_SKIP() << "this machine has a GPU";
  const std::string dnn = message_of([] {
    cudnnHandle_t handle = nullptr;
    check_cudnn(cudnn().cudnnCreate(&handle), "cudnnCreate");
  });
  EXPECT_TRUE(dnn.starts_with("cudnnCreate failed: CUDNN_STATUS_NOT_INITIALIZED (")) << dnn;
  const std::string blas = message_of([] {
    cublasLtHandle_t handle = nullptr;
    check_cublas(cublas_lt().cublasLtCreate(&handle), "cublasLtCreate");
  });
  EXPECT_TRUE(blas.starts_with("cublasLtCreate failed: CUBLAS_STATUS_")) << blas;
}

TEST(MatmulKey, ChoosesTheEpilogue) {
  const Matmul matmul{{2, 3, 4}};
  const auto epilogue = [&](bool b, Activation activation) {
    return matmul_key(matmul, b, activation).epilogue;
  };
  EXPECT_EQ(epilogue(false, Activation::none), CUBLASLT_EPILOGUE_DEFAULT);
  EXPECT_EQ(epilogue(false, Activation::relu), CUBLASLT_EPILOGUE_RELU);
  EXPECT_EQ(epilogue(true, Activation::none), CUBLASLT_EPILOGUE_BIAS);
  EXPECT_EQ(epilogue(true, Activation::relu), CUBLASLT_EPILOGUE_RELU_BIAS);
  EXPECT_EQ(matmul_key_with_bias_gradient(matmul).epilogue, CUBLASLT_EPILOGUE_BGRADB);
}

TEST(MatmulKey, DiffersByWhatThePlanDependsOn) {
  alignas(256) std::array<float, 64> memory{};
  float* base = memory.data();
  const Matmul matmul{{2, 3, 4, true, false}, base, base, base};
  const MatmulKey key = matmul_key(matmul, false, Activation::none);
  EXPECT_EQ(key, matmul_key(matmul, false, Activation::none));
  EXPECT_NE(key, matmul_key(matmul, true, Activation::none));
  const Matmul other_size{{2, 3, 4, true, true}, base, base, base};
  EXPECT_NE(key, matmul_key(other_size, false, Activation::none));
  for (const Matmul& shifted :
       {Matmul{matmul.size, base + 1, base, base}, Matmul{matmul.size, base, base + 1, base},
        Matmul{matmul.size, base, base, base + 1}}) {
    EXPECT_NE(key, matmul_key(shifted, false, Activation::none));
  }
}

TEST(MatmulDescriptors, AreTakenByTheLibrary) {
  const float bias = 0;
  for (const LinearCase& c : linear_cases()) {
    for (const bool transposed : {false, true}) {
      for (const Activation activation : {Activation::none, Activation::relu}) {
        const Matmul matmul{{c.outputs, 17, c.inputs, transposed, !transposed}};
        const MatmulKey key = matmul_key(matmul, true, activation);
        EXPECT_EQ(message_of([&] {
                    MatmulDescriptors descriptors(key, transposed);
                    descriptors.set_bias(&bias);
                    const MatmulPreference preference(key, 1 << 20, transposed);
                    const MatmulKey gradient = matmul_key_with_bias_gradient(matmul);
                    MatmulDescriptors(gradient, transposed).set_bias(&bias);
                  }),
                  "");
      }
    }
  }
}

TEST(Alignment, IsTheGreatestPowerOfTwoUpToTheLimit) {
  alignas(64) const std::array<char, 64> memory{};
  const auto at = [&](std::size_t offset) { return alignment_of(&memory[offset], 16); };
  EXPECT_EQ(at(4), 4);
  EXPECT_EQ(at(24), 8);
  EXPECT_EQ(at(48), 16);
  EXPECT_EQ(at(32), 16);
  EXPECT_EQ(alignment_of(nullptr, 16), 16);
}

TEST(PlanCache, MakesAPlanOnceForAKey) {
  PlanCache<int, std::string> cache;
  const auto never = []() -> std::string { throw Error("it was there already"); };
  std::string& one = cache.find_or(1, [] { return std::string("one"); });
  EXPECT_EQ(cache.find_or(2, [] { return std::string("two"); }), "two");
  EXPECT_EQ(&cache.find_or(1, never), &one);
  EXPECT_THROW((void)cache.find_or(3, never), Error);
  EXPECT_EQ(cache.find_or(3, [] { return std::string("three"); }), "three");
}

/// Some tests need a library that can be told how to behave.
bool is_stand_in() {
  const std::vector<CudaDeviceInfo> gpus = survey_cuda().devices;
  return !gpus.empty() && gpus[0].name.starts_with("stand-in");
}

TEST(CudaKernels, ThatAGpuCannotRunAreToldWhenItIsOpened) {
  if (!is_stand_in()) GTEST_SKIP() << "for the stand-in";
  const auto why = [](const char* ptx, const char* capability) {
    setenv("RINGLET_STAND_IN_PTX", ptx, 1);                // NOLINT(concurrency-mt-unsafe)
    setenv("RINGLET_STAND_IN_CAPABILITY", capability, 1);  // NOLINT(concurrency-mt-unsafe)
    CudaSurvey survey = survey_cuda();
    look_at_each(survey);
    const std::string text = message_of([] { (void)open_device({DeviceKind::cuda, 0}); });
    unsetenv("RINGLET_STAND_IN_PTX");         // NOLINT(concurrency-mt-unsafe)
    unsetenv("RINGLET_STAND_IN_CAPABILITY");  // NOLINT(concurrency-mt-unsafe)
    const std::string expected =
        "device cuda:0 cannot be used: " + survey.devices.at(0).why_not + ", or use --device cpu";
    EXPECT_TRUE(survey.devices.at(0).why_not.empty() ? text.empty() : text == expected) << text;
    return survey.devices.at(0).why_not;
  };
  EXPECT_EQ(why("90", "90"), "");
  EXPECT_EQ(why("0", "75"),
            "its compute capability is 7.5, and Ringlet needs 8.0 or more; take another GPU");
  EXPECT_EQ(why("0", "86"),
            "this build has no kernels for its compute capability, 8.6; build with CUDAARCHS=86");
}

// On the stand-in for GPUs, whose ReLU can lose NaN. What the real ones do is not documented.
TEST(CudaNaN, PassesThroughTheReluOfALibraryThatLosesIt) {
  if (!is_stand_in()) GTEST_SKIP() << "for the stand-in";
  for (const char* relu : {"", "loses-nan"}) {
    if (*relu != '\0') setenv("RINGLET_STAND_IN_RELU", relu, 1);  // NOLINT(concurrency-mt-unsafe)
    const auto device = open_device({DeviceKind::cuda, 0}, {.tf32 = true});
    Stream& stream = device->compute();
    const auto filled = [&](const Shape& shape, float value) {
      Tensor tensor(*device, shape);
      fill(stream, value, tensor);
      return tensor;
    };
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const Tensor bias = filled({3}, -1);
    for (const float x : {nan, 1.0F, -1.0F}) {
      const float expected = std::isnan(x) ? nan : std::max(0.0F, 4 * x - 1);
      for (const bool is_linear : {true, false}) {
        const Tensor y = filled(is_linear ? Shape{2, 3} : Shape{2, 3, 1, 1}, 7);
        if (is_linear) {
          linear_forward(stream, filled({2, 4}, x), filled({3, 4}, 1), bias, Activation::relu, y);
        } else {
          conv2d_forward(stream, {}, filled({2, 1, 2, 2}, x), filled({3, 1, 2, 2}, 1), bias,
                         Activation::relu, y);
        }
        std::array<float, 6> values{};
        copy_to_host(stream, y, values.data());
        for (const float value : values) {
          EXPECT_TRUE(std::isnan(expected) ? std::isnan(value) : value == expected)
              << value << " for " << x << (is_linear ? " linear " : " convolution ") << relu;
        }
      }
    }
  }
  unsetenv("RINGLET_STAND_IN_RELU");  // NOLINT(concurrency-mt-unsafe)
}

struct LinearGradients {
  std::vector<float> dw, db;
  bool operator==(const LinearGradients&) const = default;
};

LinearGradients linear_gradients(const DeviceOptions& options, float beta_db, float broken = 0) {
  const auto device = open_device({DeviceKind::cuda, 0}, options);
  const auto samples = random_floats(5 * 3, 1), gradients = random_floats(5 * 4, 2);
  auto dy_values = gradients;
  dy_values[5] += broken;  // sample 1, output 1
  const Tensor x = upload(*device, {5, 3}, samples), dy = upload(*device, {5, 4}, dy_values);
  const Tensor dw = upload(*device, {4, 3}, std::vector<float>(12, kNaN));
  const Tensor db = upload(*device, {4}, std::vector<float>(4, beta_db == 0 ? kNaN : 2.0F));
  linear_backward_weight_bias(device->compute(), x, dy, 0, dw, beta_db, db);
  return {read(device->compute(), dw), read(device->compute(), db)};
}

// What a GPU's own cuBLASLt has is asked there. On the stand-in it has all, none, or one that loses
// NaN.
TEST(CudaBiasGradient, ComesWithTheProductWhereTheLibraryKeepsNaN) {
  if (!is_stand_in()) GTEST_SKIP() << "for the stand-in";
  const LinearGradients ours = linear_gradients({.deterministic = true}, 0);
  for (const char* epilogue : {"", "none", "loses-nan"}) {
    SCOPED_TRACE(epilogue);
    setenv("RINGLET_STAND_IN_BGRADB", epilogue, 1);  // NOLINT(concurrency-mt-unsafe)
    const LinearGradients found = linear_gradients({}, 0);
    EXPECT_LE(relative_l2(found.dw, ours.dw), 1e-6);
    EXPECT_LE(relative_l2(found.db, ours.db), 1e-6);
    const LinearGradients broken = linear_gradients({}, 0, kNaN);
    for (std::size_t o = 0; o < 4; ++o) EXPECT_EQ(std::isnan(broken.db[o]), o == 1);
    const LinearGradients added = linear_gradients({}, 1);  // the library can only overwrite
    for (std::size_t o = 0; o < 4; ++o) EXPECT_NEAR(added.db[o], ours.db[o] + 2, 1e-6F);
  }
  unsetenv("RINGLET_STAND_IN_BGRADB");  // NOLINT(concurrency-mt-unsafe)
}

TEST(Autotune, TakesTheLeastTimeOfAFewRounds) {
  // By candidate and round: the second is the fastest but once, the third cannot be launched.
  const std::vector<std::vector<float>> times = {{5, 5, 5}, {9, 4, 9}, {}, {6, 4.5F, 6}};
  std::vector<std::size_t> rounds(times.size(), 0);
  const int best = fastest(4, [&](int candidate) -> std::optional<float> {
    const auto i = static_cast<std::size_t>(candidate);
    if (times[i].empty()) return std::nullopt;
    return times[i].at(rounds[i]++);
  });
  EXPECT_EQ(best, 1);
  EXPECT_EQ(rounds, (std::vector<std::size_t>{3, 3, 0, 3}));
  EXPECT_EQ(fastest(2, [](int) { return std::nullopt; }), 0);
}

}  // namespace
}  // namespace ringlet::test
