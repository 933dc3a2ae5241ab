// A visitor hears of every layer once, by its kind and path, in the order of the forward pass.
#include "nn/layer_visitor.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/error.h"
#include "nn/layers/sequential.h"
#include "nn/models/model.h"

namespace ringlet::nn {
namespace {

class Recorder final : public LayerVisitor {
 public:
  void visit(const std::string& name, const Conv2d&) override { heard.push_back("conv " + name); }
  void visit(const std::string& name, const Linear&) override { heard.push_back("linear " + name); }
  void visit(const std::string& name, const ReLU&) override { heard.push_back("relu " + name); }
  void visit(const std::string& name, const AvgPool2d&) override { heard.push_back("avg " + name); }
  void visit(const std::string& name, const MaxPool2d&) override { heard.push_back("max " + name); }
  void visit(const std::string& name, const Flatten&) override { heard.push_back("flat " + name); }
  void visit(const std::string& name, const Dropout&) override { heard.push_back("drop " + name); }
  std::vector<std::string> heard;
};

TEST(LayerVisitor, HearsOfAModelInOrder) {
  const auto lenet = make_model("lenet", {});
  Recorder recorder;
  visit_layers(*lenet, recorder);
  EXPECT_EQ(recorder.heard,
            (std::vector<std::string>{"conv conv1", "relu relu1", "avg pool1", "conv conv2",
                                      "relu relu2", "avg pool2", "flat flatten", "linear fc1",
                                      "relu relu3", "linear fc2"}));
}

TEST(LayerVisitor, GoesIntoLayersOfLayers) {
  Sequential outer;
  auto& inner = outer.add<Sequential>("block");
  inner.add<MaxPool2d>("pool", Pool2dSpec{});
  inner.add<Dropout>("drop", 0.5F);
  outer.add<Flatten>("flatten");
  Recorder recorder;
  visit_layers(outer, recorder);
  EXPECT_EQ(recorder.heard,
            (std::vector<std::string>{"max block.pool", "drop block.drop", "flat flatten"}));
}

TEST(LayerVisitor, NamesALayerThatItDoesNotKnow) {
  class Strange : public Layer {
   public:
    Variable forward(Tape&, const Variable& x) override { return x; }
  };
  Sequential model;
  model.add<Strange>("odd");
  Recorder recorder;
  try {
    visit_layers(model, recorder);
    FAIL() << "nothing was thrown";
  } catch (const ContractError& error) {
    EXPECT_NE(std::string(error.what()).find("'odd'"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace ringlet::nn
