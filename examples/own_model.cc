// A model of one's own that branches and adds: a small residual network. In exact mode it is
// trained on one replica and on two, which must write the same bytes; then it becomes an ONNX file.
//
//   image -> conv -> ReLU -> pool -+-> conv -> ReLU -> conv -+-> add -> ReLU -> linear -> logits
//                                  '-------------------------'
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>

#include "ringlet.h"
#include "train/onnx/onnx_export.h"

using namespace ringlet;
namespace fs = std::filesystem;

constexpr int kChannels = 8;

nn::Conv2dOptions same_size(int channels) {
  return {.in_channels = channels, .out_channels = kChannels, .spec = {.padding = {1, 1}}};
}

std::unique_ptr<nn::Layer> make_net(const nn::ModelInput& input) {
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Conv2d>("conv", same_size(input.channels));
  net->add<nn::ReLU>("relu1");
  net->add<nn::AvgPool2d>("pool", Pool2dSpec{});
  nn::Sequential& body = net->add<nn::Residual>("block").body();
  body.add<nn::Conv2d>("conv1", same_size(kChannels));
  body.add<nn::ReLU>("relu");
  body.add<nn::Conv2d>("conv2", same_size(kChannels));
  net->add<nn::ReLU>("relu2");
  net->add<nn::Flatten>("flatten");
  net->add<nn::Linear>("out", kChannels * (input.height / 2) * (input.width / 2), input.outputs);
  return net;
}

std::string bytes_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

int main() {
  const data::Splits garments = data::make_synthetic({.train = 1500, .test = 300});
  const fs::path folder =
      fs::temp_directory_path() / ("own_model_" + std::to_string(std::random_device{}()));

  std::string weights[2];
  double accuracy = 0;
  for (const int replicas : {1, 2}) {
    train::TrainOptions options{.recipe = train::default_recipe("mlp"), .make_model = make_net};
    options.recipe.model = "residual";
    options.recipe.data = "garments";
    options.recipe.batch_size = 50;
    options.recipe.epochs = 2;
    options.recipe.exact = true;
    options.execution.sync = "doubling";
    options.execution.devices.resize(static_cast<std::size_t>(replicas));
    options.files.out = folder / std::to_string(replicas);
    fs::create_directories(options.files.out);
    const train::RunSetup setup = make_run_setup(options, garments, replicas);
    accuracy = train::train(setup, {}).test.accuracy();

    const fs::path file = options.files.out / "model.safetensors";
    weights[replicas - 1] = bytes_of(file);
    const std::string onnx = train::to_onnx(file, setup.model, make_net);
    std::printf("%d replicas: test accuracy %.1f %%, %zu bytes of weights, %zu of ONNX\n", replicas,
                100 * accuracy, weights[replicas - 1].size(), onnx.size());
  }
  fs::remove_all(folder);
  const bool same = !weights[0].empty() && weights[0] == weights[1];
  std::printf("%s\n", same ? "the same bytes on one replica and on two" : "the bytes differ");
  return same && accuracy > 0.5 ? 0 : 1;
}
