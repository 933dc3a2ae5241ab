// The registry of models: every model in it can be made, planned, trained as its recipe says, and
// exported; and a model of one's own, with a branch, can be all that as well.
#include "train/recipe/models.h"

#include <gtest/gtest.h>

#include <string>

#include "nn/layers/conv2d.h"
#include "nn/layers/linear.h"
#include "nn/layers/residual.h"
#include "nn/layers/stateless.h"
#include "nn/ops/softmax_cross_entropy.h"
#include "nn/plan.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"
#include "train/onnx/onnx.pb.h"
#include "train/onnx/onnx_export.h"

namespace ringlet::train {
namespace {

using testing::says;

constexpr std::int64_t kSteps = 3;

/// Enough for every replica; a large model is not given more than its machinery needs.
std::int64_t batch_of(const std::string& name) {
  constexpr std::int64_t kLarge = 1'000'000;  // parameters
  const auto model = make_model(name, {});
  std::int64_t parameters = 0;
  for (const nn::Parameter* p : nn::register_model(*model).parameters) {
    parameters += p->shape.count();
  }
  return parameters < kLarge ? 64 : 4;
}

class EveryModel : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, EveryModel, ::testing::ValuesIn(model_names()),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(EveryModel, TrainsByItsRecipeAndIsExported) {
  const testing::TemporaryDirectory folder;
  TrainOptions options{.recipe = default_recipe(GetParam())};
  EXPECT_EQ(options.recipe.model, GetParam());
  EXPECT_FALSE(model_help(GetParam()).empty());
  const std::int64_t batch = batch_of(GetParam());
  options.recipe.batch_size = batch;
  options.recipe.data = "formula";
  options.execution.devices.resize(2);
  options.files.out = folder.path();
  options.max_steps = kSteps;
  EXPECT_EQ(run(options, formula_splits(batch * kSteps, batch < 64 ? 4 : 40)).losses().size(),
            std::size_t{kSteps});
  const auto file = folder / "model.safetensors";
  onnx::Model model;
  EXPECT_TRUE(model.ParseFromString(to_onnx(file, read_model_info(file).value())));
}

TEST_P(EveryModel, IsMadeForItsUsualImages) {
  const nn::ModelInput input = usual_input(GetParam());
  const auto model = make_model(GetParam(), input);
  const nn::Registry registry = nn::register_model(*model);
  const nn::InputSpec spec{.shape = {2, input.channels, input.height, input.width}};
  const nn::Plan plan = nn::plan_training(*model, registry, spec, nn::softmax_cross_entropy);
  EXPECT_GT(plan.parameter_count, 0);
}

TEST(Models, NamesTheKnownOnesWhenAskedForAnother) {
  for (const auto& ask : std::initializer_list<std::function<void()>>{
           [] { make_model("lenett", {}); }, [] { default_recipe("lenett"); }}) {
    const std::string message = testing::message_of<ContractError>(ask);
    EXPECT_TRUE(says(message, {"'lenett'"}));
    for (const std::string& name : model_names()) EXPECT_TRUE(says(message, {name}));
  }
}

/// image -> conv -> ReLU -+-> conv -> ReLU -> dropout -> conv -+-> add -> pool -> linear
///                        '------------------------------------'
std::unique_ptr<nn::Layer> make_branching(const nn::ModelInput& input) {
  constexpr int kChannels = 4;
  const auto conv = [](int channels) {
    return nn::Conv2dOptions{
        .in_channels = channels, .out_channels = kChannels, .spec = {.padding = {1, 1}}};
  };
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Conv2d>("conv", conv(input.channels));
  net->add<nn::ReLU>("relu");
  nn::Sequential& body = net->add<nn::Residual>("block").body();
  body.add<nn::Conv2d>("conv1", conv(kChannels));
  body.add<nn::ReLU>("relu");
  body.add<nn::Dropout>("drop", 0.1F);
  body.add<nn::Conv2d>("conv2", conv(kChannels));
  net->add<nn::MaxPool2d>("pool", Pool2dSpec{});
  net->add<nn::Flatten>("flatten");
  net->add<nn::Linear>("fc", std::int64_t{kChannels} * (input.height / 2) * (input.width / 2),
                       input.outputs);
  return net;
}

struct Trained {
  std::string file;
  std::string onnx;
  std::vector<double> losses;
};

Trained train_branching(int replicas, LayoutChoice layout) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = exact_options(replicas);
  options.recipe.model = "branching";
  options.make_model = make_branching;
  options.execution.layout = layout;
  options.files.out = folder.path();
  const data::Splits data = formula_splits(150);
  const Outcome outcome = run(options, data);
  const auto file = folder / "model.safetensors";
  return {testing::read_file(file),
          to_onnx(file, make_run_setup(options, data, replicas).model, make_branching),
          outcome.losses()};
}

TEST(OwnModel, WithABranchGivesTheSameBytesOnOneReplicaAndOnTwo) {
  for (const LayoutChoice layout : {LayoutChoice::nchw, LayoutChoice::lanes}) {
    const Trained one = train_branching(1, layout), two = train_branching(2, layout);
    EXPECT_GT(one.file.size(), 10'000u);
    EXPECT_TRUE(one.file == two.file);
    EXPECT_LT(one.losses.back(), one.losses.front());
    EXPECT_TRUE(one.onnx == two.onnx);
  }
}

TEST(OwnModel, WithABranchIsExportedWithItsSum) {
  onnx::Model model;
  ASSERT_TRUE(model.ParseFromString(train_branching(1, LayoutChoice::nchw).onnx));
  std::vector<std::string> nodes;
  for (const onnx::Node& node : model.graph().node()) {
    nodes.push_back(node.op_type() + " " + node.input(0) +
                    (node.op_type() == "Add" ? " " + node.input(1) : "") + " = " + node.output(0));
  }
  EXPECT_EQ(nodes,
            (std::vector<std::string>{
                "Mul image = scaled", "Add scaled shift = normalized", "Conv normalized = conv",
                "Relu conv = relu", "Conv relu = block.body.conv1",
                "Relu block.body.conv1 = block.body.relu",
                "Conv block.body.relu = block.body.conv2", "Add block.body.conv2 relu = block",
                "MaxPool block = pool", "Flatten pool = flatten", "Gemm flatten = logits"}));
}

}  // namespace
}  // namespace ringlet::train
