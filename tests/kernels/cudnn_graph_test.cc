// The choice of cuDNN's engines, without a GPU: cuDNN plans for a GPU that is described to it as
// well as for one that is there. conv2d_test.cc tests what a plan computes.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/conv2d_graph.h"
#include "tests/kernels/cases.h"
#include "tests/support/described_gpu.h"

namespace ringlet::cudnn_graph {
namespace {

using test::Conv2dCase;

constexpr EngineRules kStrict{false, true, 256 << 20};
constexpr EngineRules kTf32{true, false, 256 << 20};

Conv2dKey key_of(Conv2dPass pass, const Conv2dSpec& spec, const Shape& x, const Shape& w) {
  Conv2dKey key;
  key.pass = pass;
  key.spec = spec;
  key.x = x;
  key.w = w;
  key.y = conv2d_output_shape(spec, x, w);
  return key;
}

/// LeNet's second convolution at batch 256, for which tensor cores are faster.
Conv2dKey lenet_key(Conv2dPass pass) { return key_of(pass, {}, {256, 20, 13, 13}, {50, 20, 5, 5}); }

/// Every pass with everything that it may be asked for, but a ReLU without a bias: in plain f32,
/// cuDNN has no engine for that, and conv2d_forward() runs our ReLU behind the convolution.
std::vector<Conv2dKey> keys_of(const Conv2dCase& c, Layout layout = Layout::nchw) {
  std::vector<Conv2dKey> keys(3, key_of(Conv2dPass::forward, c.spec, c.x.with_batch(17), c.w));
  keys[1].bias = true;
  keys[2].bias = true;
  keys[2].activation = Activation::relu;
  for (const Conv2dPass pass : {Conv2dPass::backward_data, Conv2dPass::backward_filter}) {
    for (const float beta : test::kBetas) {
      keys.push_back(key_of(pass, c.spec, c.x.with_batch(17), c.w));
      keys.back().beta = beta;
    }
  }
  for (Conv2dKey& key : keys) key.layout = layout;
  return keys;
}

class CudnnGraph : public ::testing::TestWithParam<test::DescribedGpu> {
 protected:
  void SetUp() override {
    try {
      properties_ = device_properties(test::json_of(GetParam()));
    } catch (const DeviceError& error) {
      GTEST_SKIP() << "this cuDNN describes GPUs otherwise: " << error.what();
    }
    target_.device_properties = &*properties_;
  }

  std::vector<Plan> plans(const Conv2dKey& key, cudnnBackendHeurMode_t mode,
                          const EngineRules& rules, int wanted = 1) {
    const Conv2dGraph graph(target_, key);
    return find_plans(target_, graph, std::vector{mode}, rules, wanted, why_not_);
  }

  std::optional<Descriptor> properties_;
  Target target_;
  std::string why_not_;
};

TEST_P(CudnnGraph, HasAnEngineForEveryCaseUnderTheStrictestRules) {
  for (const Conv2dCase& c : test::conv2d_cases()) {
    for (const Conv2dKey& key : keys_of(c)) {
      EXPECT_EQ(plans(key, CUDNN_HEUR_MODE_A, kStrict).size(), 1U)
          << describe(key) << ": " << why_not_;
    }
  }
}

TEST_P(CudnnGraph, HasAnEngineForEveryCaseInNhwc) {
  for (const Conv2dCase& c : test::conv2d_cases()) {
    for (const Conv2dKey& key : keys_of(c, Layout::nhwc)) {
      for (const EngineRules& rules : {kStrict, kTf32}) {
        const bool found = !plans(key, CUDNN_HEUR_MODE_A, rules).empty() ||
                           !plans(key, CUDNN_HEUR_MODE_FALLBACK, rules).empty();
        EXPECT_TRUE(found) << describe(key) << ": " << why_not_;
      }
    }
  }
}

/// A convolution of resnet18-cifar's first stage at batch 128, each pass of it.
TEST_P(CudnnGraph, TransposesNoImageInNhwcOnTensorCores) {
  if (GetParam().capability < 900) GTEST_SKIP() << "its first plan transposes half of them";
  constexpr std::int64_t kImages = 128 * 64 * 32 * 32 * 4, kFilters = 64 * 64 * 9 * 4;
  for (const Conv2dPass pass :
       {Conv2dPass::forward, Conv2dPass::backward_data, Conv2dPass::backward_filter}) {
    Conv2dKey key = key_of(pass, {.padding = {1, 1}}, {128, 64, 32, 32}, {64, 64, 3, 3});
    key.alignment = 16;
    const auto nchw = plans(key, CUDNN_HEUR_MODE_A, kTf32);
    key.layout = Layout::nhwc;
    const auto nhwc = plans(key, CUDNN_HEUR_MODE_A, kTf32);
    ASSERT_EQ(nhwc.size(), 1U) << why_not_;
    EXPECT_NE(numerical_notes(nhwc[0].engine_config) & (1U << CUDNN_NUMERICAL_NOTE_TENSOR_CORE),
              0U);
    EXPECT_LE(nhwc[0].workspace, 8 * kFilters) << describe(key);
    ASSERT_EQ(nchw.size(), 1U) << why_not_;
    EXPECT_GE(nchw[0].workspace, kImages) << describe(key);
  }
}

// But for a bias, which engines add that cuDNN compiles when they are needed, on a GPU: where there
// is none, conv2d_forward() adds it in a pass of its own. Gradients of filters are f32, of widened
// factors (cudnn_convolutions.h).
TEST_P(CudnnGraph, HasAnEngineForEveryNarrowCase) {
  for (const Layout layout : {Layout::nhwc, Layout::nchw}) {
    for (const Conv2dCase& c : test::conv2d_cases()) {
      for (Conv2dKey key : keys_of(c, layout)) {
        if (key.bias) continue;
        key.widened = key.pass == Conv2dPass::backward_filter;
        key.alignment = 2;
        for (const DType dtype : {DType::bf16, DType::f16}) {
          key.dtype = key.widened ? DType::f32 : dtype;
          const bool found = !plans(key, CUDNN_HEUR_MODE_A, kStrict).empty() ||
                             !plans(key, CUDNN_HEUR_MODE_FALLBACK, kStrict).empty();
          EXPECT_TRUE(found) << describe(key) << ": " << why_not_;
        }
      }
    }
  }
}

TEST_P(CudnnGraph, MultipliesNarrowNumbersOnTensorCoresWhateverIsSaidOfF32) {
  for (const Conv2dPass pass :
       {Conv2dPass::forward, Conv2dPass::backward_data, Conv2dPass::backward_filter}) {
    Conv2dKey key = key_of(pass, {.padding = {1, 1}}, {128, 64, 32, 32}, {64, 64, 3, 3});
    key.layout = Layout::nhwc;
    key.alignment = 16;
    key.widened = pass == Conv2dPass::backward_filter;
    key.dtype = key.widened ? DType::f32 : DType::bf16;
    const auto found = plans(key, CUDNN_HEUR_MODE_A, kStrict);
    ASSERT_EQ(found.size(), 1U) << describe(key) << ": " << why_not_;
    EXPECT_NE(numerical_notes(found[0].engine_config) & (1U << CUDNN_NUMERICAL_NOTE_TENSOR_CORE),
              0U)
        << describe(key);
  }
}

TEST_P(CudnnGraph, HasALastResortForEveryCase) {
  for (const Conv2dCase& c : test::conv2d_cases()) {
    for (const Conv2dKey& key : keys_of(c)) {
      EXPECT_EQ(plans(key, CUDNN_HEUR_MODE_FALLBACK, kStrict).size(), 1U)
          << describe(key) << ": " << why_not_;
    }
  }
}

TEST_P(CudnnGraph, TakesMemoryThatIsOnlyAlignedForItsElements) {
  for (const Conv2dPass pass :
       {Conv2dPass::forward, Conv2dPass::backward_data, Conv2dPass::backward_filter}) {
    Conv2dKey key = lenet_key(pass);
    key.alignment = 4;
    EXPECT_EQ(plans(key, CUDNN_HEUR_MODE_A, kStrict).size(), 1U)
        << describe(key) << ": " << why_not_;
  }
}

TEST_P(CudnnGraph, UsesTensorCoresOnlyWhenAsked) {
  constexpr std::uint32_t kTensorCore = 1U << CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
  const Conv2dKey key = lenet_key(Conv2dPass::forward);
  const auto fast = plans(key, CUDNN_HEUR_MODE_A, kTf32);
  ASSERT_EQ(fast.size(), 1U) << why_not_;
  EXPECT_NE(numerical_notes(fast[0].engine_config) & kTensorCore, 0U);
  const auto strict = plans(key, CUDNN_HEUR_MODE_A, kStrict);
  ASSERT_EQ(strict.size(), 1U) << why_not_;
  EXPECT_EQ(numerical_notes(strict[0].engine_config) & kTensorCore, 0U);
}

/// The first 1x1 convolution of ResNet-18 that has stride 2: heuristic A's first engine has none.
TEST_P(CudnnGraph, TakesAnEngineWithTensorCoresWhereTheChannelsSuitThem) {
  Conv2dKey key =
      key_of(Conv2dPass::forward, {.stride = {2, 2}}, {256, 64, 56, 56}, {128, 64, 1, 1});
  key.layout = Layout::nhwc;
  key.alignment = 16;
  key.dtype = DType::bf16;
  const auto found = plans(key, CUDNN_HEUR_MODE_A, kStrict);
  ASSERT_EQ(found.size(), 1U) << why_not_;
  EXPECT_NE(numerical_notes(found[0].engine_config) & (1U << CUDNN_NUMERICAL_NOTE_TENSOR_CORE), 0U);
}

TEST_P(CudnnGraph, KeepsToTheWorkspaceLimit) {
  const Conv2dKey key = lenet_key(Conv2dPass::backward_filter);
  const auto plentiful = plans(key, CUDNN_HEUR_MODE_A, kTf32, 20);
  ASSERT_TRUE(std::ranges::any_of(plentiful, [](const Plan& plan) { return plan.workspace > 0; }));
  const auto none = plans(key, CUDNN_HEUR_MODE_A, {true, false, 0}, 20);
  EXPECT_FALSE(none.empty());
  EXPECT_LT(none.size(), plentiful.size());
  for (const Plan& plan : none) EXPECT_EQ(plan.workspace, 0);
}

TEST_P(CudnnGraph, SaysWhyThereIsNoPlan) {
  EXPECT_TRUE(plans(lenet_key(Conv2dPass::forward), CUDNN_HEUR_MODE_A, {true, false, -1}).empty());
  EXPECT_NE(why_not_.find("MiB of scratch memory"), std::string::npos) << why_not_;
}

TEST_P(CudnnGraph, RefusesShapesThatDoNotFit) {
  Conv2dKey key = lenet_key(Conv2dPass::forward);
  key.y = {256, 50, 9, 10};
  try {
    const Conv2dGraph graph(target_, key);
    FAIL() << "cuDNN took it";
  } catch (const DeviceError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("cudnnBackend")) << error.what();
    EXPECT_NE(std::string(error.what()).find("CUDNN_STATUS_BAD_PARAM"), std::string::npos)
        << error.what();
  }
}

TEST_P(CudnnGraph, TrustsWinogradsEngineWithWindowsOf3x3Alone) {
  constexpr std::int64_t kWinograd = 17;
  const auto trusts = [&](Conv2dPass pass, const Shape& w) {
    const Conv2dKey key = key_of(pass, {}, {32, 20, 13, 13}, w);
    return Conv2dGraph(target_, key).trusts_engine(kWinograd);
  };
  EXPECT_TRUE(trusts(Conv2dPass::backward_filter, {50, 20, 3, 3}));
  EXPECT_FALSE(trusts(Conv2dPass::backward_filter, {50, 20, 5, 5}));
  EXPECT_FALSE(trusts(Conv2dPass::backward_filter, {50, 20, 3, 5}));
  EXPECT_TRUE(trusts(Conv2dPass::forward, {50, 20, 5, 5}));
}

INSTANTIATE_TEST_SUITE_P(Gpus, CudnnGraph, ::testing::Values(test::kA100, test::kH200),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(EngineRules, SayWhichNotesArePermitted) {
  constexpr auto bit = [](cudnnBackendNumericalNote_t note) { return 1U << note; };
  constexpr EngineRules kPlain{}, kFast{.tf32 = true}, kFixed{.deterministic = true};
  const auto permitted = [](std::uint32_t notes, const EngineRules& rules) {
    return cudnn_graph::permitted(notes, false, rules);
  };
  EXPECT_TRUE(permitted(0, kPlain));
  EXPECT_TRUE(permitted(bit(CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP), kPlain));
  EXPECT_TRUE(permitted(bit(CUDNN_NUMERICAL_NOTE_WINOGRAD), kPlain));
  for (const auto note :
       {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
        CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, CUDNN_NUMERICAL_NOTE_FFT,
        CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6,
        CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13}) {
    EXPECT_FALSE(permitted(bit(note), kPlain)) << note;
    const bool is_wrong = note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
                          note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
    EXPECT_EQ(permitted(bit(note), kFast), !is_wrong) << note;
  }
  EXPECT_TRUE(permitted(bit(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC), kFast));
  EXPECT_FALSE(permitted(bit(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC), kFixed));
  for (const EngineRules& rules : {kPlain, kFast}) {  // of narrow numbers
    EXPECT_TRUE(cudnn_graph::permitted(bit(CUDNN_NUMERICAL_NOTE_TENSOR_CORE), true, rules));
    EXPECT_FALSE(
        cudnn_graph::permitted(bit(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION), true, rules));
  }
  EXPECT_FALSE(cudnn_graph::permitted(bit(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC), true, kFixed));
}

TEST(Conv2dKey, IsDescribed) {
  Conv2dKey key = key_of(Conv2dPass::forward, {.stride = {2, 3}}, {8, 1, 28, 28}, {20, 1, 3, 3});
  key.bias = true;
  EXPECT_EQ(describe(key),
            "conv2d_forward of x [8, 1, 28, 28], w [20, 1, 3, 3], stride 2x3, padding 0x0, "
            "dilation 1x1, groups 1, bias, beta 0.000000");
  key.layout = Layout::nhwc;
  EXPECT_TRUE(describe(key).starts_with("conv2d_forward in nhwc of x [8, 1, 28, 28],"));
}

TEST(Conv2dKey, DiffersByWhatThePlanDependsOn) {
  const Conv2dKey key = lenet_key(Conv2dPass::forward);
  std::vector<Conv2dKey> others(6, key);
  others[0].pass = Conv2dPass::backward_data;
  others[1].spec.groups = 2;
  others[2].bias = true;
  others[3].activation = Activation::relu;
  others[4].beta = 1;
  others[5].alignment = 16;
  others.push_back(key);
  others.back().layout = Layout::nhwc;
  others.push_back(key);
  others.back().dtype = DType::bf16;
  others.push_back(key);
  others.back().widened = true;
  EXPECT_EQ(key, lenet_key(Conv2dPass::forward));
  for (const Conv2dKey& other : others) EXPECT_NE(key, other) << describe(other);
}

}  // namespace
}  // namespace ringlet::cudnn_graph
