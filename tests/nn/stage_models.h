// Models to cut into stages, small enough for tests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "nn/layers/batch_norm2d.h"
#include "nn/layers/conv2d.h"
#include "nn/layers/linear.h"
#include "nn/layers/sequential.h"
#include "nn/layers/stateless.h"
#include "nn/models/iresnet.h"
#include "nn/models/lenet.h"
#include "nn/models/mlp.h"
#include "nn/models/model.h"
#include "nn/models/resnet.h"
#include "nn/stages/stages.h"

namespace ringlet::nn::stage_models {

inline constexpr std::int64_t kSamples = 18;  // one whole block of lanes, and a part of one
inline constexpr int kClasses = 4;

inline std::unique_ptr<Layer> make_practitioner_lenet(const ModelInput& input) {
  return make_lenet(input, LeNetStart::practitioner);
}

inline Conv2dOptions convolution(int in, int out) {
  return {.in_channels = in, .out_channels = out, .kernel = {3, 3}, .spec = {.padding = {1, 1}}};
}

/// Sequentials in Sequentials, with patterns that fuse in the innermost ones, dropout, and layers
/// that only look at their input.
inline std::unique_ptr<Layer> make_nested(const ModelInput& input) {
  auto net = std::make_unique<Sequential>();
  auto& encoder = net->add<Sequential>("encoder");
  auto& stem = encoder.add<Sequential>("stem");
  stem.add<Conv2d>("conv", convolution(input.channels, 6));
  stem.add<ReLU>("relu");
  stem.add<AvgPool2d>("pool", Pool2dSpec{});
  encoder.add<BatchNorm2d>("norm", 6);
  encoder.add<ReLU>("relu");
  encoder.add<Dropout>("drop", 0.3F);
  encoder.add<Sequential>("nothing");
  auto& decoder = net->add<Sequential>("decoder");
  decoder.add<Flatten>("flatten");
  decoder.add<InF32>("in_f32");
  auto& head = decoder.add<Sequential>("head");
  head.add<Linear>("fc", std::int64_t{6} * (input.height / 2) * (input.width / 2), 9);
  head.add<ReLU>("relu");
  head.add<Dropout>("drop", 0.3F);
  decoder.add<Linear>("fc", 9, input.outputs);
  return net;
}

struct Model {
  std::string name;
  std::function<std::unique_ptr<Layer>(const ModelInput&)> make;
  int extent = 16;
  bool is_large = false;
};

inline const std::vector<Model>& models() {
  static const std::vector<Model> all{
      {"lenet", make_practitioner_lenet},
      {"mlp", make_mlp},
      {"nested", make_nested},
      {"resnet20", make_resnet20, 8},
      {"resnet18", make_resnet18, 32, true},
      {"resnet50", make_resnet50, 32},
      {"iresnet18", make_iresnet18, 16, true},
  };
  return all;
}

inline const Model& model_called(std::string_view name) {
  for (const Model& model : models()) {
    if (model.name == name) return model;
  }
  throw ContractError("there is no such model");
}

struct Case {
  Model model;
  Layout layout = Layout::nchw;
  DType dtype = DType::f32;

  ModelInput input() const { return {3, model.extent, model.extent, kClasses}; }
  InputSpec spec() const { return {{kSamples, 3, model.extent, model.extent}, layout, dtype}; }
};

inline Units units_of_case(const Case& c, Layer& model, bool fuse = true) {
  return units_of(model, register_model(model), c.spec(), fuse);
}
inline Units units_of_model(const char* name) {
  const Case c{model_called(name)};
  return units_of_case(c, *c.model.make(c.input()));
}

}  // namespace ringlet::nn::stage_models
