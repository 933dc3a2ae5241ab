// Plan: what one training step will need, found by a dry run before anything is allocated.
//
// The model runs forward and backward on the meta device, where operations check their contracts
// and count their cost but compute nothing. The run finds
//   - the order in which gradients become final. This is the order of the arenas, so that a bucket
//     is a range and bucket 0 is final first
//   - the number of uses of each parameter
//   - the size of the activations
//   - the flops and bytes of a step
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/stream.h"
#include "nn/batch.h"
#include "nn/layer.h"

namespace ringlet::nn {

/// A parameter's range of the flat arenas of values, gradients and optimiser state.
struct PlannedParameter {
  std::string name;
  Shape shape;             ///< of what this rank holds
  int id = -1;             ///< Parameter::id
  int uses = 0;            ///< recorded uses in a step; 0: unused, its gradient is zero
  std::int64_t begin = 0;  ///< first element in the arena, a multiple of kArenaAlignment
  std::int64_t end = 0;    ///< begin + shape.count(); that of gradients: gradient_end()
  Placement placement = Placement::replicated;
  bool of_loss = false;    ///< Parameter::of_loss
  std::int64_t rows = 0;   ///< of the whole, where these are cut
  double final_flops = 0;  ///< of backward, done when its gradient is final
  /// Rows of its gradient, where a step has some alone (Parameter::sampling); -1: all.
  std::int64_t gradient_rows = -1;
  bool is_written_once = false;  ///< Parameter::is_written_once
  Shape gradient() const { return gradient_rows < 0 ? shape : shape.with_batch(gradient_rows); }
  std::int64_t gradient_end() const { return begin + gradient().count(); }
};

struct Plan {
  /// Elements: every parameter starts on a cache line.
  static constexpr std::int64_t kArenaAlignment = 16;

  /// In the order in which gradients become final; those that are frozen come first, then those of
  /// a rate of their own, and those whose rows are cut last.
  std::vector<PlannedParameter> parameters;
  std::int64_t elements = 0;          ///< of an arena, gaps for alignment included
  std::int64_t frozen = 0;            ///< those of them, at its beginning, that are not learnt
  std::int64_t head = 0;              ///< those behind them that have a rate of their own
  std::int64_t of_loss = 0;           ///< those of them, at its end, that are the loss's own
  std::int64_t sharded = 0;           ///< those of them, at its end, that are rows cut over ranks
  std::int64_t without_gradient = 0;  ///< those of them, at its end, that no gradient's arena has
  std::int64_t parameter_count = 0;   ///< numbers that are learnt, whoever holds them
  std::int64_t rows_apart = 0;        ///< those of a gradient of rows, its first ones, that exact
                                      ///< mode keeps apart by logical shard
  std::int64_t running_elements = 0;  ///< of all updates of running statistics
  std::int64_t activation_bytes = 0;  ///< high-water mark of the activation arena
  std::int64_t step_bytes = 0;        ///< that operations keep from pass to pass of a step
  DType activations = DType::f32;     ///< BatchSpec::activations
  Layout images = Layout::nchw;       ///< BatchSpec::images
  WorkTotals forward;
  WorkTotals backward;

  /// Whether nobody asks for its gradient.
  bool is_frozen(const PlannedParameter& planned) const { return planned.begin < frozen; }
  /// Whether rows are cut. The same on all ranks; some may have none.
  bool is_sharded() const {
    return !parameters.empty() && parameters.back().placement == Placement::rows;
  }
  /// Elements of an arena that are alike on all ranks: the first ones.
  std::int64_t replicated() const { return elements - sharded; }
  /// Elements of an arena of gradients: `elements`, less those of rows that no step has.
  std::int64_t with_gradient() const { return elements - without_gradient; }
  /// Elements of an arena of gradients that are alike on all ranks: the first ones.
  std::int64_t replicated_gradient() const { return std::min(replicated(), with_gradient()); }
  /// Elements of an arena that are the model's own: the first ones.
  std::int64_t of_model() const { return elements - of_loss; }
};

/// The model's input, one batch: f32, shape [N, C, H, W].
struct InputSpec {
  Shape shape;
  Layout layout = Layout::nchw;
  /// The type that it is cast to before the first layer, and so that of all activations: f32, bf16
  /// or f16.
  DType activations = DType::f32;
  /// Bytes that activations may take at most. A batch that needs more ends the dry run at once.
  std::int64_t memory = Arena::kUnlimited;
};

/// A batch as the model takes it: a constant of the tape, of the activations' type.
Variable model_input(Tape& tape, const View& batch, DType activations);

/// Runs `pass` of a model that is registered as `registry` forward and backward on the meta device,
/// as the rank that `registry` is placed for.
/// Leaves the parameters' views as they were. Throws ContractError when a layer does not fit its
/// input or forgets a gradient (Tape::check_layers()), OutOfMemoryError for more activations than
/// `batch.memory`. `fuse`: see StepContext.
Plan plan_training(const Registry& registry, const BatchSpec& batch, const Pass& pass,
                   bool fuse = true);

/// Bytes of activations that an evaluation pass needs, whose outputs are all kept.
std::int64_t plan_evaluation(const Registry& registry, const BatchSpec& batch, const Pass& pass,
                             bool fuse = true);

/// The loss that training minimises, from the model's output and the targets (i32 [N]).
using LossFunction = std::function<Variable(const Variable& output, const Variable& targets)>;

// The same for a model of one input, whose batches are images and targets.

/// Its batches, and its pass.
BatchSpec batch_of(const InputSpec& input);
Pass pass_of(Layer& model, const LossFunction& loss);

Plan plan_training(Layer& model, const Registry& registry, const InputSpec& input,
                   const LossFunction& loss, bool fuse = true);
std::int64_t plan_evaluation(Layer& model, const Registry& registry, const InputSpec& input,
                             const LossFunction& loss, bool fuse = true);

}  // namespace ringlet::nn
