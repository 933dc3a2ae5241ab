#include "nn/models/resnet.h"

#include <string>
#include <vector>

#include "nn/layers/batch_norm2d.h"
#include "nn/layers/conv2d.h"
#include "nn/layers/linear.h"
#include "nn/layers/residual_block.h"
#include "nn/layers/sequential.h"
#include "nn/layers/stateless.h"

namespace ringlet::nn {

namespace {

/// What tells one residual network from another.
struct ResNetSpec {
  std::vector<int> blocks;  // of each stage
  int width = 64;           // channels of the first stage; each further one has twice as many
  bool bottleneck = false;
  bool small_images = false;  // the stem is a 3x3 convolution, without pooling
};

class ResNetBuilder {
 public:
  explicit ResNetBuilder(const ResNetSpec& spec) : spec_(spec), channels_(spec.width) {}

  std::unique_ptr<Layer> build(const ModelInput& input) {
    auto net = std::make_unique<Sequential>();
    add_stem(*net, input.channels);
    for (std::size_t stage = 0; stage < spec_.blocks.size(); ++stage) {
      auto& layers = net->add<Sequential>("layer" + std::to_string(stage + 1));
      for (int block = 0; block < spec_.blocks[stage]; ++block) {
        add_block(layers, std::to_string(block), spec_.width << stage,
                  stage > 0 && block == 0 ? 2 : 1);
      }
    }
    net->add<AdaptiveAvgPool2d>("avgpool");
    net->add<Flatten>("flatten");
    net->add<Linear>("fc", channels_, input.outputs);
    return net;
  }

 private:
  void add_convolution(Sequential& to, const std::string& name, int in, int out, int kernel,
                       int stride) const {
    const std::int64_t fan_out = std::int64_t{out} * kernel * kernel;
    to.add<Conv2d>(
        name,
        Conv2dOptions{.in_channels = in,
                      .out_channels = out,
                      .kernel = {kernel, kernel},
                      .spec = {.stride = {stride, stride}, .padding = {kernel / 2, kernel / 2}},
                      .bias = false},
        Initializer::kaiming_normal(fan_out), Initializer::zeros());
  }

  void add_stem(Sequential& net, int in) const {
    const bool small = spec_.small_images;
    add_convolution(net, "conv1", in, spec_.width, small ? 3 : 7, small ? 1 : 2);
    net.add<BatchNorm2d>("bn1", spec_.width);
    net.add<ReLU>("relu");
    if (small) return;
    net.add<MaxPool2d>("maxpool",
                       Pool2dSpec{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
  }

  void add_block(Sequential& to, const std::string& name, int width, int stride) {
    const int out = spec_.bottleneck ? 4 * width : width;
    auto& block = to.add<ResidualBlock>(name, spec_.bottleneck ? "bn3" : "bn2", out);
    Sequential& body = block.body();
    if (spec_.bottleneck) {
      add_convolution(body, "conv1", channels_, width, 1, 1);
      body.add<BatchNorm2d>("bn1", width);
      body.add<ReLU>("relu1");
      add_convolution(body, "conv2", width, width, 3, stride);
      body.add<BatchNorm2d>("bn2", width);
      body.add<ReLU>("relu2");
      add_convolution(body, "conv3", width, out, 1, 1);
    } else {
      add_convolution(body, "conv1", channels_, width, 3, stride);
      body.add<BatchNorm2d>("bn1", width);
      body.add<ReLU>("relu");
      add_convolution(body, "conv2", width, width, 3, 1);
    }
    if (stride != 1 || channels_ != out) {
      add_convolution(block.downsample(), "0", channels_, out, 1, stride);
      block.downsample().add<BatchNorm2d>("1", out);
    }
    channels_ = out;
  }

  ResNetSpec spec_;
  int channels_;  // of what the layers so far give
};

std::unique_ptr<Layer> make(const ResNetSpec& spec, const ModelInput& input) {
  return ResNetBuilder(spec).build(input);
}

}  // namespace

std::unique_ptr<Layer> make_resnet18(const ModelInput& input) {
  return make({.blocks = {2, 2, 2, 2}}, input);
}

std::unique_ptr<Layer> make_resnet34(const ModelInput& input) {
  return make({.blocks = {3, 4, 6, 3}}, input);
}

std::unique_ptr<Layer> make_resnet50(const ModelInput& input) {
  return make({.blocks = {3, 4, 6, 3}, .bottleneck = true}, input);
}

std::unique_ptr<Layer> make_resnet18_cifar(const ModelInput& input) {
  return make({.blocks = {2, 2, 2, 2}, .small_images = true}, input);
}

std::unique_ptr<Layer> make_resnet20(const ModelInput& input) {
  return make({.blocks = {3, 3, 3}, .width = 16, .small_images = true}, input);
}

}  // namespace ringlet::nn
