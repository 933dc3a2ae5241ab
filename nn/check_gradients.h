// check_gradients(): whether a layer's backward is the derivative of its forward. For tests of
// layers of one's own:
//
//   PReLU layer;
//   nn::check_gradients(layer, {4, 3, 5, 5});   // throws, and says which gradient is wrong
//
// The layer runs on numbers drawn at random. Some elements of its input and of each parameter are
// moved a little, up and down; what that does to a weighted sum of the outputs is the difference
// that the gradient is compared with. A second pass has the layer add to gradients that are there
// (beta is 1). On a processor a layer that says so (Layer::takes()) runs in lanes as well, and
// has to give what it gives in nchw.
#pragma once

#include <cstdint>

#include "kernels/device.h"
#include "nn/layer.h"

namespace ringlet::nn {

struct GradientCheck {
  Layout layout = Layout::nchw;  ///< of the input
  bool wants_input = true;       ///< false: the layer takes data, which want no gradient
  /// The most that a gradient may be off, as a part of the largest one of its tensor. Of the
  /// library's layers none is off by more than 0.7 %: so far differences in f32 are wrong.
  double tolerance = 1e-2;
  int elements = 32;       ///< of each tensor that are moved, at most, drawn at random; at least 1
  std::uint64_t seed = 1;  ///< of the numbers, and of dropout
};

/// Throws ContractError for a gradient that is wrong: with tensor, element, gradient and
/// difference; for numbers of an operation's output that it does not write, gradients that it
/// overwrites where it should add, and others in lanes than in nchw. Before, it throws what
/// plan_training() finds (nn/plan.h): memory that is touched in the dry run, values and targets
/// that were forgotten. Returns the largest error, as `tolerance` measures it. A layer that bends,
/// as ReLU does, is compared on either side of a bend, and over steps from 1e-2 to 1e-5: the best
/// of them counts. A gradient that is 5 % too small between two convolutions with a ReLU is found
/// so. The more layers bend, the less is found, and a right model as deep as ResNet-20 is refused,
/// for it bends and rounds too much: check its layers. The layer has new weights afterwards, and no
/// memory for them.
double check_gradients(Device& device, Layer& layer, const Shape& input,
                       const GradientCheck& options = {});
/// On a processor.
double check_gradients(Layer& layer, const Shape& input, const GradientCheck& options = {});

}  // namespace ringlet::nn
