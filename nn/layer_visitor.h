// LayerVisitor: is shown a model's layers in the order of the forward pass, each by its kind. For
// code that writes a model in another form. A new kind of layer is a new function here, and the
// compiler then lists the visitors that do not know it yet.
#pragma once

#include <string>

#include "nn/layers/conv2d.h"
#include "nn/layers/linear.h"
#include "nn/layers/stateless.h"

namespace ringlet::nn {

class LayerVisitor {
 public:
  virtual ~LayerVisitor() = default;
  /// `name` is the layer's path in the model: "conv1".
  virtual void visit(const std::string& name, const Conv2d& layer) = 0;
  virtual void visit(const std::string& name, const Linear& layer) = 0;
  virtual void visit(const std::string& name, const ReLU& layer) = 0;
  virtual void visit(const std::string& name, const AvgPool2d& layer) = 0;
  virtual void visit(const std::string& name, const MaxPool2d& layer) = 0;
  virtual void visit(const std::string& name, const Flatten& layer) = 0;
  virtual void visit(const std::string& name, const Dropout& layer) = 0;
};

/// Shows `model` to `visitor`, a Sequential layer by layer. Throws ContractError naming a layer of
/// another kind.
void visit_layers(const Layer& model, LayerVisitor& visitor);

}  // namespace ringlet::nn
