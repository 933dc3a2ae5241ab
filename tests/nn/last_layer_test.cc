// Which of a model's tensors are its last layer's.
#include "nn/last_layer.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "nn/layers/batch_norm2d.h"
#include "nn/layers/conv2d.h"
#include "nn/layers/linear.h"
#include "nn/layers/prelu.h"
#include "nn/layers/sequential.h"
#include "nn/models/iresnet.h"
#include "nn/parameters.h"

namespace ringlet::nn {
namespace {

using Names = std::vector<std::string>;

Names names_in_last(Layer& model) {
  const Registry registry = register_model(model);
  const LastLayer last(registry);
  Names names{last.name() + ":"};
  const auto add = [&](const auto& tensors) {
    for (const auto* tensor : tensors) {
      if (last.has(*tensor)) names.push_back(tensor->name);
    }
  };
  add(registry.parameters);
  add(registry.buffers);
  add(registry.counters);
  return names;
}

Names names_in_last(const std::function<void(Sequential&)>& add_layers) {
  Sequential model;
  add_layers(model);
  return names_in_last(model);
}

TEST(LastLayer, BeginsWithTheLastMatrix) {
  EXPECT_EQ(names_in_last([](Sequential& net) {
              net.add<BatchNorm2d>("bn", 3);
              net.add<Linear>("fc1", 3, 4);
              net.add<Linear>("fc2", 4, 2);
            }),
            (Names{"fc2:", "fc2.weight", "fc2.bias"}));
  EXPECT_EQ(names_in_last([](Sequential& net) {
              net.add<Conv2d>("conv1", Conv2dOptions{.in_channels = 1, .out_channels = 2});
              net.add<Conv2d>("conv2", Conv2dOptions{.in_channels = 2, .out_channels = 2});
              net.add<PReLU>("prelu", 2);
            }),
            (Names{"conv2:", "conv2.weight", "conv2.bias", "prelu.weight"}));
}

TEST(LastLayer, HasTheNormBehindIt) {
  const Names statistics{"norm.running_mean", "norm.running_var", "norm.num_batches_tracked"};
  for (const bool affine : {true, false}) {
    Names expected{"fc:", "fc.weight", "fc.bias"};
    if (affine) expected.insert(expected.end(), {"norm.weight", "norm.bias"});
    expected.insert(expected.end(), statistics.begin(), statistics.end());
    EXPECT_EQ(names_in_last([&](Sequential& net) {
                net.add<BatchNorm2d>("bn", 3, BatchNorm2dOptions{.affine = affine});
                net.add<Linear>("fc", 3, 2);
                net.add<BatchNorm2d>("norm", 2, BatchNorm2dOptions{.affine = affine});
              }),
              expected);
  }
  const auto iresnet = make_iresnet18({.channels = 1, .height = 16, .width = 16, .outputs = 3});
  EXPECT_EQ(
      names_in_last(*iresnet),
      (Names{"fc:", "fc.weight", "fc.bias", "features.bias", "features.weight",
             "features.running_mean", "features.running_var", "features.num_batches_tracked"}));
}

TEST(LastLayer, OfAModelWithoutAMatrixIsTheLastThatIsLearnt) {
  EXPECT_EQ(names_in_last([](Sequential& net) {
              net.add<PReLU>("prelu", 3);
              net.add<BatchNorm2d>("norm", 3, BatchNorm2dOptions{.weight_is_one = true});
            }),
            (Names{"norm:", "norm.bias", "norm.weight", "norm.running_mean", "norm.running_var",
                   "norm.num_batches_tracked"}));
  Linear whole(3, 2);
  EXPECT_EQ(names_in_last(whole), (Names{"weight:", "weight", "bias"}));
  Sequential nothing;
  EXPECT_EQ(names_in_last(nothing), (Names{":"}));
}

}  // namespace
}  // namespace ringlet::nn
