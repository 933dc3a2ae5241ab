#include "kernels/cuda/conv2d_graph.h"

#include <algorithm>
#include <utility>

namespace ringlet::cudnn_graph {

namespace {

/// Values inside the graph that never reach memory.
constexpr std::int64_t kProduct = 5, kSum = 6;

std::string to_string(const Extent2& extent) {
  return std::to_string(extent.h) + "x" + std::to_string(extent.w);
}

const char* name_of(Conv2dPass pass) {
  switch (pass) {
    case Conv2dPass::forward:
      return "conv2d_forward";
    case Conv2dPass::backward_data:
      return "conv2d_backward_data";
    case Conv2dPass::backward_filter:
      return "conv2d_backward_filter";
  }
  return "";
}

/// The names of one pass's operation and of its attributes.
struct PassNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
};

PassNames names_of(Conv2dPass pass) {
  switch (pass) {
    case Conv2dPass::backward_data:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Conv2dPass::backward_filter:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    case Conv2dPass::forward:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
}

constexpr std::uint32_t bit(cudnnBackendNumericalNote_t note) { return 1U << note; }

/// The proposals of a mode. Those with tensor cores come first where these may be used and suit the
/// graph: the heuristic has put a slower one in front (of a 1x1 convolution with stride 2).
std::vector<Descriptor> proposals(const Target& target, const Conv2dGraph& graph,
                                  cudnnBackendHeurMode_t mode, const EngineRules& rules) {
  std::vector<Descriptor> configs = engine_configs(target, graph.graph(), mode);
  if (graph.suits_tensor_cores() && (rules.tf32 || graph.narrow())) {
    std::stable_partition(configs.begin(), configs.end(), [](const Descriptor& config) {
      return (numerical_notes(config) & bit(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) != 0;
    });
  }
  return configs;
}

}  // namespace

std::string describe(const Conv2dKey& key) {
  const Conv2dSpec& spec = key.spec;
  const std::string dtype = is_narrow(key.dtype) ? std::string(" in ") + name_of(key.dtype) : "";
  return name_of(key.pass) + dtype + (key.layout == Layout::nhwc ? " in nhwc" : "") + " of x " +
         key.x.to_string() + ", w " + key.w.to_string() + ", stride " + to_string(spec.stride) +
         ", padding " + to_string(spec.padding) + ", dilation " + to_string(spec.dilation) +
         ", groups " + std::to_string(spec.groups) + (key.bias ? ", bias" : "") +
         (key.activation == Activation::relu ? ", relu" : "") + ", beta " +
         std::to_string(key.beta);
}

Conv2dGraph::Conv2dGraph(const Target& target, const Conv2dKey& key)
    : narrow_(is_narrow(key.dtype) || key.widened),
      is_wide_filter_gradient_(key.pass == Conv2dPass::backward_filter &&
                               !(key.w[2] == 3 && key.w[3] == 3)),
      suits_tensor_cores_(key.w[1] % 8 == 0 && key.w[0] / key.spec.groups % 8 == 0) {
  // The chain ends in y: whatever comes before the last operation is a value inside the graph.
  const bool relu = key.activation == Activation::relu;
  const auto value = [&](std::int64_t id, bool is_last) {
    const DType dtype = is_last ? key.dtype : DType::f32;  // rounded once, at the end
    return tensor(is_last ? kY : id, key.y, dtype, key.layout, key.alignment, !is_last);
  };
  const Descriptor& product = keep(value(kProduct, !key.bias && !relu));
  add_convolution(key, product);
  const Descriptor* last = &product;
  if (key.bias) {
    const Descriptor& bias =
        keep(tensor(kBias, {1, key.w[0], 1, 1}, DType::f32, key.layout, key.alignment));
    const Descriptor& sum = keep(value(kSum, !relu));
    add_pointwise(CUDNN_POINTWISE_ADD, *last, &bias, sum);
    last = &sum;
  }
  if (relu) add_pointwise(CUDNN_POINTWISE_RELU_FWD, *last, nullptr, keep(value(kY, true)));
  graph_ = operation_graph(target, operations_);
}

bool Conv2dGraph::trusts_engine(std::int64_t number) const {
  // Winograd's transform with tiles of 9 x 9, of which the engine has no note. On an H200 (cuDNN
  // 9.19) its sums were 4e-6 off for windows of 3 x 3, and 1.7e-3 for 5 x 5: less than bf16 has.
  constexpr std::int64_t kWinogradFilterGradient = 17;
  return !(is_wide_filter_gradient_ && number == kWinogradFilterGradient);
}

const Descriptor& Conv2dGraph::keep(Descriptor descriptor) {
  return parts_.emplace_front(std::move(descriptor));
}

void Conv2dGraph::add_convolution(const Conv2dKey& key, const Descriptor& y) {
  const PassNames names = names_of(key.pass);
  Descriptor operation(names.operation);
  operation.set(names.x, keep(tensor(kX, key.x, key.dtype, key.layout, key.alignment)));
  operation.set(names.w, keep(tensor(kW, key.w, key.dtype, key.layout, key.alignment)));
  operation.set(names.y, y);
  operation.set(names.convolution, keep(convolution(key.spec)));
  operation.set(names.alpha, 1.0F);
  operation.set(names.beta, key.beta);
  operation.finalize();
  operations_.push_back(std::move(operation));
}

void Conv2dGraph::add_pointwise(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor* b,
                                const Descriptor& y) {
  Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, keep(pointwise(mode)));
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (b != nullptr) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  operation.finalize();
  operations_.push_back(std::move(operation));
}

bool permitted(std::uint32_t notes, bool narrow, const EngineRules& rules) {
  // f32 as f16 ends at 65504; sums are f32.
  constexpr std::uint32_t kWrong = bit(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) |
                                   bit(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
  // A transform (FFT, Winograd with large tiles) loses one to two digits, which TF32 does not have.
  constexpr std::uint32_t kInexact =
      kWrong | bit(CUDNN_NUMERICAL_NOTE_FFT) | bit(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4) |
      bit(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6) | bit(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13);
  // Tensor cores take f32 only as TF32. Narrow floats they take as they are.
  constexpr std::uint32_t kRounded = kInexact | bit(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  const std::uint32_t forbidden = narrow ? kInexact : rules.tf32 ? kWrong : kRounded;
  if ((notes & forbidden) != 0) return false;
  return !rules.deterministic || (notes & bit(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) == 0;
}

bool is_naive_filter_gradient(const Plan& plan) {
  const std::int64_t engine = engine_number(plan.engine_config);
  return engine == 0 || engine == 1;
}

std::vector<Plan> find_plans(const Target& target, const Conv2dGraph& graph,
                             std::span<const cudnnBackendHeurMode_t> modes,
                             const EngineRules& rules, int wanted, std::string& why_not) {
  std::vector<Plan> plans;
  why_not = "no engine keeps to the settings of tf32 and deterministic";
  for (const cudnnBackendHeurMode_t mode : modes) {
    for (Descriptor& config : proposals(target, graph, mode, rules)) {
      if (std::ssize(plans) == wanted) return plans;
      if (!permitted(numerical_notes(config), graph.narrow(), rules)) continue;
      if (!graph.trusts_engine(engine_number(config))) continue;
      std::optional<Descriptor> plan = execution_plan(target, config, why_not);
      if (!plan) continue;
      const std::int64_t workspace = workspace_bytes(*plan);
      if (workspace > rules.workspace_limit) {
        why_not = "the engine wants " + std::to_string(workspace >> 20) + " MiB of scratch memory";
        continue;
      }
      plans.push_back({std::move(config), std::move(*plan), workspace});
    }
    if (!plans.empty()) break;  // the next mode is for what this one cannot do
  }
  return plans;
}

}  // namespace ringlet::cudnn_graph
