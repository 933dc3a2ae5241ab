// A network that is described once and built twice: as the Sequential under test, and in double on
// the naive references of kernels/reference, forward and backward.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "kernels/conv2d.h"
#include "kernels/dropout.h"
#include "kernels/pool2d.h"
#include "nn/layers/sequential.h"
#include "nn/tape.h"

namespace ringlet::nn {

struct ConvSpec {
  int in_channels, out_channels;
  Extent2 kernel{3, 3};
  Conv2dSpec spec{};
  bool bias = true;
};
struct LinearSpec {
  std::int64_t in_features, out_features;
};
struct ReluSpec {};
struct AvgSpec {
  Pool2dSpec spec{};
};
struct MaxSpec {
  Pool2dSpec spec{};
};
struct FlattenSpec {};
struct DropSpec {
  float probability;
};
struct NormSpec {
  int channels;
};
struct GlobalAvgSpec {};

struct NetLayer;
struct ResidualSpec {
  std::vector<NetLayer> body;
  std::vector<NetLayer> shortcut;
};

/// A ResidualBlock; its norm is "bn".
struct BlockSpec {
  std::vector<NetLayer> body;
  int channels;
  std::vector<NetLayer> downsample;
};

struct NetLayer {
  std::string name;  ///< with the names of the layers that it lies in: "block.body.conv"
  std::variant<ConvSpec, LinearSpec, ReluSpec, AvgSpec, MaxSpec, FlattenSpec, DropSpec, NormSpec,
               GlobalAvgSpec, ResidualSpec, BlockSpec>
      spec;
};

struct Net {
  std::string name;
  Shape sample;  // [1, C, H, W]
  std::vector<NetLayer> layers;
};

/// The nets that the tests go through: one without a convolution, lenet (for images of 14 x 14,
/// small enough for naive loops), one of convolutions, ReLUs and average poolings, one of residual
/// blocks, one of residual blocks with batch norm, and last one with padding, stride, dilation,
/// groups, maximum pooling and dropout.
std::vector<Net> test_nets();
/// LeNet for images of `extent` x `extent`.
Net lenet_net(int extent);

std::unique_ptr<Sequential> make_sequential(const Net& net);

/// Values and gradients of parameters by name, N, C, H, W order.
using Values = std::map<std::string, std::vector<double>>;

struct Reference {
  double loss = 0;
  Values gradients;
  /// The least distance of any ReLU's input from 0 and of any maximum from its runner-up. Near a
  /// kink, float and double may take different sides.
  double distance_from_kink = 0;
};

/// The summed softmax cross-entropy of a batch and `seed` times its gradient.
Reference run_reference(const Net& net, const Values& parameters, const std::vector<double>& x,
                        const std::vector<std::int32_t>& labels, double seed = 1,
                        const StepContext& context = {});

}  // namespace ringlet::nn
