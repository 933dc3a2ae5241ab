#include "nn/models/iresnet.h"

#include <array>
#include <string>

#include "nn/layers/batch_norm2d.h"
#include "nn/layers/conv2d.h"
#include "nn/layers/linear.h"
#include "nn/layers/prelu.h"
#include "nn/layers/residual_block.h"
#include "nn/layers/sequential.h"
#include "nn/layers/stateless.h"

namespace ringlet::nn {

namespace {

constexpr int kWidth = 64;        // channels of the first stage; each further one has twice as many
constexpr int kShrinks = 1 << 4;  // by four stages

void add_convolution(Sequential& to, const std::string& name, int in, int out, int kernel,
                     int stride) {
  to.add<Conv2d>(
      name,
      Conv2dOptions{.in_channels = in,
                    .out_channels = out,
                    .kernel = {kernel, kernel},
                    .spec = {.stride = {stride, stride}, .padding = {kernel / 2, kernel / 2}},
                    .bias = false},
      Initializer::normal(0.1F), Initializer::zeros());
}

void add_block(Sequential& to, const std::string& name, int in, int out, int stride) {
  auto& block = to.add<ResidualBlock>(name, "bn3", out, Activation::none);
  Sequential& body = block.body();
  body.add<BatchNorm2d>("bn1", in);
  add_convolution(body, "conv1", in, out, 3, 1);
  body.add<BatchNorm2d>("bn2", out);
  body.add<PReLU>("prelu", out);
  add_convolution(body, "conv2", out, out, 3, stride);
  if (stride == 1) return;
  add_convolution(block.downsample(), "0", in, out, 1, stride);
  block.downsample().add<BatchNorm2d>("1", out);
}

std::unique_ptr<Layer> make(const std::array<int, 4>& blocks, const ModelInput& input) {
  auto net = std::make_unique<Sequential>();
  add_convolution(*net, "conv1", input.channels, kWidth, 3, 1);
  net->add<BatchNorm2d>("bn1", kWidth);
  net->add<PReLU>("prelu", kWidth);
  int channels = kWidth;
  for (int stage = 0; stage < 4; ++stage) {
    auto& layers = net->add<Sequential>("layer" + std::to_string(stage + 1));
    const int out = kWidth << stage;
    for (int block = 0; block < blocks[static_cast<std::size_t>(stage)]; ++block) {
      add_block(layers, std::to_string(block), block == 0 ? channels : out, out,
                block == 0 ? 2 : 1);
    }
    channels = out;
  }
  const auto shrunk = [](int extent) { return (extent + kShrinks - 1) / kShrinks; };
  net->add<BatchNorm2d>("bn2", channels);
  net->add<Flatten>("flatten");
  net->add<InF32>("in_f32");
  net->add<Linear>("fc", std::int64_t{channels} * shrunk(input.height) * shrunk(input.width),
                   input.outputs);
  net->add<BatchNorm2d>("features", input.outputs, BatchNorm2dOptions{.weight_is_one = true});
  return net;
}

}  // namespace

std::unique_ptr<Layer> make_iresnet18(const ModelInput& input) { return make({2, 2, 2, 2}, input); }
std::unique_ptr<Layer> make_iresnet34(const ModelInput& input) { return make({3, 4, 6, 3}, input); }
std::unique_ptr<Layer> make_iresnet50(const ModelInput& input) {
  return make({3, 4, 14, 3}, input);
}
std::unique_ptr<Layer> make_iresnet100(const ModelInput& input) {
  return make({3, 13, 30, 3}, input);
}

}  // namespace ringlet::nn
