// A model whose output is an embedding, and the centres of the classes that it is trained to tell
// apart, [C, D]: what nn::margin_softmax() compares the embedding with. The centres are the loss's:
// whoever uses the model later does not need them (Parameter::of_loss). Their rows are cut over the
// ranks that train together.
#pragma once

#include <cstdint>
#include <memory>

#include "nn/layer.h"

namespace ringlet::nn {

class ClassCentres : public Layer {
 public:
  /// `model` gives [N, size]. Centres begin as N(0, 0.01^2), each number a function of the seed,
  /// its class and its column.
  ClassCentres(std::unique_ptr<Layer> model, std::int64_t classes, std::int64_t size);

  /// The embedding.
  Variable forward(Tape& tape, const Variable& x) override;
  bool takes(Layout layout) const override { return model_->takes(layout); }
  void register_in(Registry& registry, const std::string& prefix) override;
  Parameter& centres() { return centres_; }

 private:
  std::unique_ptr<Layer> model_;
  Parameter centres_;
};

}  // namespace ringlet::nn
