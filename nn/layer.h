// Layer: a piece of a model that owns its parameters and says how a value passes through it.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "nn/parameter.h"
#include "nn/tape.h"
#include "nn/variable.h"

namespace ringlet::nn {

class Layer {
 public:
  Layer() = default;
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  /// Computes the layer's output on the tape. Works for any device: the tape's device picks the
  /// kernels.
  virtual Variable forward(Tape& tape, const Variable& x) = 0;

  /// Whether forward(), and what it records, take activations in `layout` (kernels/tensor.h) and
  /// give their own in it. Where all layers of a model do, train() and Predictor keep activations
  /// in lanes on processors and in nhwc on GPUs' tensor cores, which is faster; else in nchw. A
  /// layer whose loops know rows alone has nothing to say. One that treats all numbers of
  /// View::storage() alike, or that asks x.layout(), takes others as well; one that holds other
  /// layers takes what they do.
  virtual bool takes(Layout layout) const { return layout == Layout::nchw; }

  /// Adds parameters and buffers to `registry`, their names beginning with `prefix` ("conv1.").
  virtual void register_in(Registry& registry, const std::string& prefix) {
    (void)registry;
    (void)prefix;
  }
};

/// Throws ContractError where a function that makes models, `who`, has made none.
inline std::unique_ptr<Layer> require_model(std::unique_ptr<Layer> model, const char* who) {
  require(model != nullptr, who, "returned no model; it should return one, and not null");
  return model;
}

/// Registers a whole model: its names begin at the root.
inline Registry register_model(Layer& model) {
  Registry registry;
  model.register_in(registry, "");
  return registry;
}

}  // namespace ringlet::nn
