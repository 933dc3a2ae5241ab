#include "nn/models/lenet.h"

#include "base/error.h"
#include "nn/layers/conv2d.h"
#include "nn/layers/linear.h"
#include "nn/layers/sequential.h"
#include "nn/layers/stateless.h"

namespace ringlet::nn {

namespace {

struct Start {
  Initializer weight;
  Initializer bias;
};

Start start_of(LeNetStart start, std::int64_t fan_in) {
  if (start == LeNetStart::textbook) return {Initializer::normal(0.01F), Initializer::zeros()};
  return {Initializer::kaiming_normal(fan_in), Initializer::zeros()};
}

/// Extent after a valid k x k convolution and a 2 x 2 pooling.
int after_block(int extent, int k) { return (extent - k + 1) / 2; }

}  // namespace

std::unique_ptr<Layer> make_lenet(const ModelInput& input, LeNetStart start) {
  const int height = after_block(after_block(input.height, 3), 5);
  const int width = after_block(after_block(input.width, 3), 5);
  require(height > 0 && width > 0, "lenet", "the images are too small; it takes 14x14 and larger");
  const std::int64_t features = std::int64_t{50} * height * width;
  const Start conv1 = start_of(start, std::int64_t{input.channels} * 9);
  const Start conv2 = start_of(start, 20 * 25);
  const Start fc1 = start_of(start, features);
  const Start fc2 = start_of(start, 128);

  auto net = std::make_unique<Sequential>();
  net->add<Conv2d>(
      "conv1", Conv2dOptions{.in_channels = input.channels, .out_channels = 20, .kernel = {3, 3}},
      conv1.weight, conv1.bias);
  net->add<ReLU>("relu1");
  net->add<AvgPool2d>("pool1", Pool2dSpec{});
  net->add<Conv2d>("conv2", Conv2dOptions{.in_channels = 20, .out_channels = 50, .kernel = {5, 5}},
                   conv2.weight, conv2.bias);
  net->add<ReLU>("relu2");
  net->add<AvgPool2d>("pool2", Pool2dSpec{});
  net->add<Flatten>("flatten");
  net->add<Linear>("fc1", features, 128, fc1.weight, fc1.bias);
  net->add<ReLU>("relu3");
  net->add<Linear>("fc2", 128, input.outputs, fc2.weight, fc2.bias);
  return net;
}

}  // namespace ringlet::nn
