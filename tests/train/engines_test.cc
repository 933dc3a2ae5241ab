// Which engines cuDNN takes for the convolutions of each model on an H100 that is described to it:
// with tensor cores wherever the channels are multiples of 8, and none that is naive. The tests
// print what they found:
//
//   build/release/tests/train/train_tests --gtest_filter='CudnnEngines.*'
#include <gtest/gtest.h>

#include <algorithm>
#include <any>
#include <array>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/conv2d_graph.h"
#include "kernels/cuda/views.h"
#include "nn/ops/conv2d.h"
#include "nn/recorded_graph.h"
#include "tests/support/described_gpu.h"
#include "train/recipe/models.h"

namespace ringlet::train {
namespace {

using cudnn_graph::Conv2dKey;
using cudnn_graph::Conv2dPass;

constexpr std::int64_t kFree = 79'000'000'000;  // bytes, of an H100 that nobody else uses

nn::ModelInput input_of(const std::string& model) {
  if (model.starts_with("lenet") || model == "mlp") return {};
  if (model.starts_with("iresnet")) return {3, 112, 112, 512};
  const bool small = model.ends_with("cifar") || model == "resnet20";
  return {3, small ? 32 : 224, small ? 32 : 224, 10};
}

/// The passes of a convolution of the model, in nhwc, with neither bias nor ReLU.
std::vector<Conv2dKey> keys_of(const nn::RecordedGraph& graph, const nn::RecordedGraph::Step& step,
                               DType dtype) {
  const auto value = [&](int i) { return graph.values().at(static_cast<std::size_t>(i)).shape; };
  Conv2dKey key;
  key.spec = std::any_cast<const nn::RecordedConv2d&>(step.spec).spec;
  key.x = value(step.inputs[0]);
  key.w = value(step.inputs[1]);
  key.y = value(step.output);
  key.layout = Layout::nhwc;
  key.alignment = 16;
  std::vector<Conv2dKey> keys;
  for (const Conv2dPass pass :
       {Conv2dPass::forward, Conv2dPass::backward_data, Conv2dPass::backward_filter}) {
    if (pass == Conv2dPass::backward_data && step.inputs[0] == graph.input()) continue;
    key.pass = pass;
    key.widened = is_narrow(dtype) && pass == Conv2dPass::backward_filter;
    key.dtype = key.widened ? DType::f32 : dtype;
    keys.push_back(key);
  }
  return keys;
}

bool suits_tensor_cores(const Conv2dKey& key) { return key.w[0] % 8 == 0 && key.w[1] % 8 == 0; }

class CudnnEngines : public ::testing::Test {
 protected:
  struct Row {
    int passes = 0, suited = 0, on_tensor_cores = 0;
    std::int64_t scratch = 0;  ///< bytes, the most of all
  };

  void count(const Conv2dKey& key, bool tf32, Row& row) {
    const cudnn_graph::Conv2dGraph graph(target_, key);
    std::string why_not;
    const auto plans = cudnn_graph::find_plans(
        target_, graph, std::array{CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK},
        {tf32, false, cuda_scratch_limit(kFree, false)}, 1, why_not);
    ASSERT_EQ(plans.size(), 1U) << describe(key) << ": " << why_not;
    const bool tensor_cores = (cudnn_graph::numerical_notes(plans[0].engine_config) &
                               (1U << CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) != 0;
    ++row.passes;
    row.on_tensor_cores += tensor_cores ? 1 : 0;
    row.scratch = std::max(row.scratch, plans[0].workspace);
    if (!suits_tensor_cores(key)) return;
    ++row.suited;
    EXPECT_TRUE(tensor_cores) << describe(key);
  }

  static std::vector<Conv2dKey> filter_gradients(const nn::RecordedGraph& graph, Layout layout) {
    std::vector<Conv2dKey> keys;
    std::set<std::string> seen;
    for (const nn::RecordedGraph::Step& step : graph.steps()) {
      if (step.operation != "conv2d") continue;
      for (Conv2dKey key : keys_of(graph, step, DType::f32)) {
        key.layout = layout;
        if (key.pass != Conv2dPass::backward_filter) continue;
        if (seen.insert(describe(key)).second) keys.push_back(key);
      }
    }
    return keys;
  }

  std::optional<cudnn_graph::Plan> deterministic_plan(const Conv2dKey& key) const {
    const cudnn_graph::Conv2dGraph graph(target_, key);
    std::string why_not;
    auto plans = cudnn_graph::find_plans(
        target_, graph, std::array{CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK},
        {false, true, cuda_scratch_limit(kFree, true)}, 1, why_not);
    if (plans.empty()) return std::nullopt;
    return std::move(plans[0]);
  }

  cudnn_graph::Descriptor gpu_ = cudnn_graph::device_properties(test::json_of(test::kH100));
  cudnn_graph::Target target_{nullptr, &gpu_};
};

TEST_F(CudnnEngines, HaveTensorCoresWhereverChannelsAreMultiplesOfEight) {
  std::printf("%-15s %5s %5s  convolutions  suited  on tensor cores  most scratch, MiB\n", "model",
              "batch", "type");
  for (const std::string& name : model_names()) {
    const nn::ModelInput input = input_of(name);
    const auto model = make_model(name, input);
    const nn::Registry registry = nn::register_model(*model);
    for (const std::int64_t batch : {64, 256, 1024}) {
      const nn::RecordedGraph graph =
          nn::record_graph(*model, registry, {batch, input.channels, input.height, input.width});
      for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
        Row row;
        std::set<std::string> seen;
        for (const nn::RecordedGraph::Step& step : graph.steps()) {
          if (step.operation != "conv2d") continue;
          for (const Conv2dKey& key : keys_of(graph, step, dtype)) {
            if (seen.insert(describe(key)).second) count(key, dtype == DType::f32, row);
          }
        }
        if (row.passes == 0) continue;  // a model without convolutions
        std::printf("%-15s %5d %5s  %12d  %6d  %15d  %17d\n", name.c_str(), int(batch),
                    dtype == DType::f32 ? "tf32" : name_of(dtype), row.passes, row.suited,
                    row.on_tensor_cores, int(row.scratch >> 20));
      }
    }
  }
}

// In strict f32, whose engines without tensor cores are the ones that are naive.
TEST_F(CudnnEngines, OfDeterministicFilterGradientsAreNoneThatAreNaive) {
  std::printf("%-15s %5s %6s  filter gradients, deterministic  ours  cuDNN's\n", "model", "batch",
              "layout");
  int naive = 0;
  for (const std::string& name : model_names()) {
    const nn::ModelInput input = input_of(name);
    const auto model = make_model(name, input);
    const nn::Registry registry = nn::register_model(*model);
    for (const std::int64_t batch : {8, 32, 256}) {
      const nn::RecordedGraph graph =
          nn::record_graph(*model, registry, {batch, input.channels, input.height, input.width});
      for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
        int ours = 0, cudnns = 0;
        for (const Conv2dKey& key : filter_gradients(graph, layout)) {
          const std::optional<cudnn_graph::Plan> plan = deterministic_plan(key);
          const bool is_ours = !plan || cudnn_graph::is_naive_filter_gradient(*plan);
          ++(is_ours ? ours : cudnns);
          const std::int64_t engine = plan ? cudnn_graph::engine_number(plan->engine_config) : 0;
          naive += engine < 2 ? 1 : 0;
          EXPECT_TRUE(is_ours || engine > 1) << describe(key) << ": engine " << engine;
        }
        if (ours + cudnns == 0) continue;
        std::printf("%-15s %5d %6s  %31d  %4d  %7d\n", name.c_str(), int(batch), name_of(layout),
                    ours + cudnns, ours, cudnns);
      }
    }
  }
  EXPECT_GT(naive, 0);  // or nobody needs ours
}

}  // namespace
}  // namespace ringlet::train
