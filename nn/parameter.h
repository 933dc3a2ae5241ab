// Parameter: a named tensor that is learnt. StateBuffer, StateCounter: named tensors that are kept,
// not learnt.
//
// A layer owns its parameters as plain members. It knows their shapes and how they start, never
// where they lie. Parameters (parameters.h) gives a model's parameters one flat arena and sets
// their views. The names are PyTorch's ("conv1.weight"), put together when the model is registered.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/tensor.h"
#include "nn/initializer.h"
#include "nn/placement.h"
#include "nn/row_sampling.h"

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

  Shape shape;  ///< of the whole, whoever holds it
  Initializer initializer;
  /// Of the whole: what this rank holds, where rows are cut (Registry::place), else all.
  Shape held() const {
    if (placement != Placement::rows) return shape;
    return shape.with_batch(rows.size());
  }
  /// The first element of the whole that this rank holds.
  std::int64_t first_held() const {
    return placement == Placement::rows ? rows.begin * shape.count_per_sample() : 0;
  }
  /// Where images lie in the layout `images`: a convolution's filters lie as images do in nhwc,
  /// so that products read them, and write their gradients, as they are.
  Layout layout_beside(Layout images) const {
    const bool apart = is_filter && images == Layout::nhwc && !is_alike_in_nhwc(shape);
    return apart ? Layout::nhwc : Layout::nchw;
  }

  ParameterKind kind;
  Placement placement = Placement::replicated;  ///< set by the layer
  int stage = 0;                                ///< where that is Placement::stage
  Rows rows;  ///< that this rank holds, of dimension 0; set by registration and Registry::place()
  /// Learnt beside the model, for its loss alone: no part of the model's files, nor of the norm
  /// that --clip-norm looks at. Set by the layer. All such parameters of a model have their rows
  /// cut, or none has.
  bool of_loss = false;
  /// Whether a step works on some rows alone, and has a gradient of these. Set by the layer; of a
  /// parameter whose rows are cut and that is the loss's.
  std::optional<RowSampling> sampling;
  std::int64_t room = 0;  ///< rows that this rank has in a step at most; set as `rows` is
  /// Of rows that are cut, in exact mode: whether the operation adds the gradients of a step's
  /// logical shards by itself, and writes their sum in the step's last pass (Backward::
  /// step_target()). Else they are kept apart to the end of the step. Set by the layer; of a
  /// parameter of the loss.
  bool adds_shards = false;
  bool is_written_once = false;  ///< it does, in this run; set as `rows` is
  /// What this rank has a gradient of.
  Shape with_gradient() const { return sampling ? shape.with_batch(room) : held(); }
  /// Those of them that are of part `index` of this rank's, where it stands at `position`.
  Rows gradient_rows(const AxisPosition& position, int index) const {
    return gradient_rows_of(sampling, shape[0], position, index);
  }
  View
      listed;  ///< i32 [room]: the rows of the step that runs (RowSampler::list); set by Parameters
  /// Not learnt in this run: nobody asks for its gradient. Set before plan and memory.
  bool is_frozen = false;
  bool is_head = false;    ///< learnt at a rate of its own; set as the above
  bool is_filter = false;  ///< [O, C/groups, KH, KW] of convolutions alone
  std::string name;        ///< "conv1.weight", set by registration
  int id = -1;             ///< position in the order of registration, set by registration
  View value;              ///< f32, a slice of the value arena, set by Parameters
  View gradient;           ///< f32, a slice of the current gradient arena, set by Parameters
  /// Where rows are cut over ranks, set by Parameters: where the gradient of this rank's rows goes,
  /// by the rank whose samples it is of; one for all outside exact mode and where
  /// `is_written_once`.
  std::vector<View> gradients_by_rank;
  /// The value rounded to the activations' type, where that is narrow: what products read. As old
  /// as the last Parameters::narrow_values().
  View narrow;
};

/// Running statistics and the like: saved with the model, equal on all ranks, without gradient.
struct StateBuffer {
  explicit StateBuffer(Shape the_shape, float the_start = 0) : shape(the_shape), start(the_start) {}

  Shape shape;
  float start;         ///< every element's value at the start
  bool stays = false;  ///< it is never another, and nothing reads it: it stands in files alone
  std::string name;    ///< "bn1.running_mean"
  int id = -1;         ///< position in the order of registration, set by registration
  int behind = 0;      ///< so many parameters, set by registration
  View value;          ///< f32, a slice of the buffer arena
};

/// A whole number that is saved with the model: PyTorch's num_batches_tracked, i64 in files.
struct StateCounter {
  std::string name;
  int behind = 0;  ///< so many parameters, set by registration
  View value;      ///< i32 [1]
};

/// What a batch norm keeps of the batches that it saw. In training, what a micro-batch says of them
/// goes into `update`, which lies behind the gradients and is summed over the world with them
/// (kernels/running_statistics.h).
struct RunningStatistics {
  explicit RunningStatistics(std::int64_t channels) : mean({channels}), variance({channels}, 1) {}

  StateBuffer mean;
  StateBuffer variance;  ///< unbiased
  StateCounter batches;
  bool is_frozen =
      false;    ///< they normalise in training as well, and stay; as Parameter::is_frozen
  View values;  ///< f32 [2, C]: mean and variance, which are neighbours
  View update;  ///< f32 [2 C + 3], a slice of the current gradient arena; absent without one
};

/// All parameters and buffers of a model, in the order of registration.
struct Registry {
  std::vector<Parameter*> parameters;
  std::vector<StateBuffer*> buffers;
  std::vector<StateCounter*> counters;
  std::vector<RunningStatistics*> running;  ///< whose parts stand in the two lists above
  std::vector<std::string> random;          ///< names by which layers draw random numbers
  AxisPosition along;                       ///< over which rows are cut, as place() was told

  /// Throws ContractError when the name, or the parameter itself, is known already.
  void add(Parameter& parameter, const std::string& name) {
    require_new(parameters, parameter, "parameters", name);
    parameter.name = name;
    parameter.id = static_cast<int>(parameters.size());
    parameter.rows = {0, parameter.shape.rank() > 0 ? parameter.shape[0] : 0};
    if (parameter.sampling) parameter.room = parameter.gradient_rows({}, 0).end;
    parameters.push_back(&parameter);
  }
  void add(StateBuffer& buffer, const std::string& name) {
    require_new(buffers, buffer, "buffers", name);
    buffer.name = name;
    buffer.id = static_cast<int>(buffers.size());
    buffer.behind = static_cast<int>(parameters.size());
    buffers.push_back(&buffer);
  }
  /// Under PyTorch's names.
  void add(RunningStatistics& statistics, const std::string& prefix) {
    add(statistics.mean, prefix + "running_mean");
    add(statistics.variance, prefix + "running_var");
    statistics.batches.name = prefix + "num_batches_tracked";
    statistics.batches.behind = statistics.mean.behind;
    counters.push_back(&statistics.batches);
    running.push_back(&statistics);
  }

  /// The name of a layer that draws random numbers: two of one name would draw the same.
  void add_random(const std::string& name) {
    if (std::find(random.begin(), random.end(), name) != random.end()) {
      throw ContractError("two layers '" + name +
                          "' would draw the same random numbers; give them different names");
    }
    random.push_back(name);
  }

  /// Whether a parameter's rows are cut.
  bool is_sharded() const {
    for (const Parameter* parameter : parameters) {
      if (parameter->placement == Placement::rows) return true;
    }
    return false;
  }
  /// Cuts rows as a rank that stands there has them. Before plan and memory. Throws ContractError
  /// for what has no rows, and for a stage that there is not: training has one, number 0.
  void place(const AxisPosition& position) {
    along = position;
    for (Parameter* parameter : parameters) {
      const Placement placement = parameter->placement;
      if (placement == Placement::stage && parameter->stage != 0) {
        throw ContractError("the parameter " + parameter->name + " is on stage " +
                            std::to_string(parameter->stage) +
                            " of the model, and training has one stage, number 0; leave its "
                            "placement out");
      }
      if (placement != Placement::rows) continue;
      if (parameter->shape.rank() == 0 || parameter->is_filter) {
        throw ContractError("the parameter " + parameter->name +
                            " is to be cut by rows; those of matrices and vectors can be");
      }
      parameter->rows = position.held(parameter->shape[0], position.rank);
      parameter->is_written_once = parameter->adds_shards && position.shards > 0;
      if (parameter->sampling) {
        parameter->room = parameter->gradient_rows(along, along.parts_of_rank() - 1).end;
      }
    }
  }

 private:
  template <class Item>
  static void require_new(const std::vector<Item*>& known, const Item& item, const char* what,
                          const std::string& name) {
    for (const Item* one : known) {
      if (one != &item && one->name != name) continue;
      throw ContractError(std::string("the model has two ") + what + " '" + name +
                          "', or one under two names; give its layers different names");
    }
  }
};

}  // namespace ringlet::nn
