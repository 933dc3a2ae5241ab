// One convolution as a graph for cuDNN, and the choice among the engines that can run it.
#pragma once

#include <cstdint>
#include <forward_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/conv2d.h"
#include "kernels/cuda/cudnn_graph.h"

namespace ringlet::cudnn_graph {

enum class Conv2dPass : std::uint8_t { forward, backward_data, backward_filter };

/// Everything that a plan depends on. `x`, `w` and `y` stand for their gradients as well.
struct Conv2dKey {
  Conv2dPass pass = Conv2dPass::forward;
  Conv2dSpec spec;
  Shape x;                       ///< [N, C, H, W]
  Shape w;                       ///< [O, C/groups, KH, KW]
  Shape y;                       ///< [N, O, OH, OW]
  DType dtype = DType::f32;      ///< of x, w and y
  bool widened = false;          ///< x and y are narrow numbers as f32, which TF32 holds exactly
  Layout layout = Layout::nchw;  ///< of x, w and y; nchw or nhwc
  bool bias = false;
  Activation activation = Activation::none;
  float beta = 0;              ///< 0 in forward
  std::int64_t alignment = 4;  ///< bytes that every address is a multiple of
  bool operator==(const Conv2dKey&) const = default;
};

/// "conv2d_forward of x [..] and w [..], stride 1x1, ...": for messages.
std::string describe(const Conv2dKey& key);

/// The numbers by which a variant pack names the tensors.
enum TensorId : std::int64_t { kX = 1, kW = 2, kY = 3, kBias = 4 };

/// The operation graph and all that it refers to.
class Conv2dGraph {
 public:
  /// Throws DeviceError when cuDNN does not take it.
  Conv2dGraph(const Target& target, const Conv2dKey& key);
  const Descriptor& graph() const { return *graph_; }
  /// Whether all factors are narrow numbers.
  bool narrow() const { return narrow_; }
  /// Whether the channels are such that tensor cores take them without filling up.
  bool suits_tensor_cores() const { return suits_tensor_cores_; }
  /// Whether an engine's results are right to the digits that its numerical notes promise.
  bool trusts_engine(std::int64_t number) const;

 private:
  const Descriptor& keep(Descriptor descriptor);
  void add_convolution(const Conv2dKey& key, const Descriptor& y);
  void add_pointwise(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor* b,
                     const Descriptor& y);

  bool narrow_;
  bool is_wide_filter_gradient_;  // of windows other than 3 x 3
  bool suits_tensor_cores_;
  std::forward_list<Descriptor> parts_;  // whose addresses stay
  std::vector<Descriptor> operations_;
  std::optional<Descriptor> graph_;
};

struct EngineRules {
  bool tf32 = false;  ///< f32 may be rounded for tensor cores
  bool deterministic = false;
  std::int64_t workspace_limit = 0;  ///< bytes
};

/// Whether an engine with these numerical notes (bits) may be used; `narrow`: for numbers that are
/// narrow, and so exact on tensor cores.
bool permitted(std::uint32_t notes, bool narrow, const EngineRules& rules);

struct Plan {
  Descriptor engine_config;
  Descriptor descriptor;
  std::int64_t workspace = 0;  ///< bytes
};

/// Whether a deterministic plan for the gradient of filters keeps few of a GPU's threads busy:
/// cuDNN's engines 0 and 1 do not cut the sum over pixels and samples.
bool is_naive_filter_gradient(const Plan& plan);

/// The first `wanted` plans in the order of `modes` and of each one's proposals. Of these, engines
/// with tensor cores come first where they may be used and the channels suit them. Fewer, or none,
/// where no more can be built under the rules: then `why_not` is cuDNN's last reason.
std::vector<Plan> find_plans(const Target& target, const Conv2dGraph& graph,
                             std::span<const cudnnBackendHeurMode_t> modes,
                             const EngineRules& rules, int wanted, std::string& why_not);

}  // namespace ringlet::cudnn_graph
