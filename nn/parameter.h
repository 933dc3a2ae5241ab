// Parameter: a named tensor that is learnt. StateBuffer, StateCounter: named tensors that are kept,
// not learnt.
//
// A layer owns its parameters as plain members. It knows their shapes and how they start, never
// where they lie. Parameters (parameters.h) gives a model's parameters one flat arena and sets
// their views. The names are PyTorch's ("conv1.weight"), put together when the model is registered.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/tensor.h"
#include "nn/initializer.h"

namespace ringlet::nn {

/// What an optimiser may treat apart. A layer that normalises says `norm` of all its parameters;
/// what else has fewer than two dimensions is taken for a bias.
enum class ParameterKind : std::uint8_t { weight, bias, norm };

struct Parameter {
  Parameter(Shape the_shape, Initializer the_initializer)
      : Parameter(the_shape, the_initializer,
                  the_shape.rank() < 2 ? ParameterKind::bias : ParameterKind::weight) {}
  Parameter(Shape the_shape, Initializer the_initializer, ParameterKind the_kind)
      : shape(the_shape), initializer(the_initializer), kind(the_kind) {}

  Shape shape;
  Initializer initializer;
  /// Where images lie in the layout `images`: a convolution's filters lie as images do in nhwc,
  /// so that products read them, and write their gradients, as they are.
  Layout layout_beside(Layout images) const {
    const bool apart = is_filter && images == Layout::nhwc && !is_alike_in_nhwc(shape);
    return apart ? Layout::nhwc : Layout::nchw;
  }

  ParameterKind kind;
  bool is_filter = false;  ///< [O, C/groups, KH, KW] of convolutions alone
  std::string name;        ///< "conv1.weight", set by registration
  int id = -1;             ///< place in the order of registration, set by registration
  View value;              ///< f32, a slice of the value arena, set by Parameters
  View gradient;           ///< f32, a slice of the current gradient arena, set by Parameters
  /// The value rounded to the activations' type, where that is narrow: what products read. As old
  /// as the last Parameters::narrow_values().
  View narrow;
};

/// Running statistics and the like: saved with the model, equal on all ranks, without gradient.
struct StateBuffer {
  explicit StateBuffer(Shape the_shape, float the_start = 0) : shape(the_shape), start(the_start) {}

  Shape shape;
  float start;       ///< every element's value at the start
  std::string name;  ///< "bn1.running_mean"
  int id = -1;       ///< place in the order of registration, set by registration
  View value;        ///< f32, a slice of the buffer arena
};

/// A whole number that is saved with the model: PyTorch's num_batches_tracked, i64 in files.
struct StateCounter {
  std::string name;
  View value;  ///< i32 [1]
};

/// What a batch norm keeps of the batches that it saw. In training, what a micro-batch says of them
/// goes into `update`, which lies behind the gradients and is summed over the world with them
/// (kernels/running_statistics.h).
struct RunningStatistics {
  explicit RunningStatistics(std::int64_t channels) : mean({channels}), variance({channels}, 1) {}

  StateBuffer mean;
  StateBuffer variance;  ///< unbiased
  StateCounter batches;
  View values;  ///< f32 [2, C]: mean and variance, which are neighbours
  View update;  ///< f32 [2 C + 3], a slice of the current gradient arena; absent without one
};

/// All parameters and buffers of a model, in the order of registration.
struct Registry {
  std::vector<Parameter*> parameters;
  std::vector<StateBuffer*> buffers;
  std::vector<StateCounter*> counters;
  std::vector<RunningStatistics*> running;  ///< whose parts stand in the two lists above

  /// Throws ContractError when the name, or the parameter itself, is known already.
  void add(Parameter& parameter, const std::string& name) {
    for (const Parameter* known : parameters) {
      if (known != &parameter && known->name != name) continue;
      throw ContractError("the model has two parameters '" + name +
                          "', or one under two names; give its layers different names");
    }
    parameter.name = name;
    parameter.id = static_cast<int>(parameters.size());
    parameters.push_back(&parameter);
  }
  void add(StateBuffer& buffer, const std::string& name) {
    buffer.name = name;
    buffer.id = static_cast<int>(buffers.size());
    buffers.push_back(&buffer);
  }
  /// Under PyTorch's names.
  void add(RunningStatistics& statistics, const std::string& prefix) {
    add(statistics.mean, prefix + "running_mean");
    add(statistics.variance, prefix + "running_var");
    statistics.batches.name = prefix + "num_batches_tracked";
    counters.push_back(&statistics.batches);
    running.push_back(&statistics);
  }
};

}  // namespace ringlet::nn
