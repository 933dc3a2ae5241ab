// Tape: the record of a forward pass, which backward walks in reverse.
//
// An operation computes its result and records a step: its inputs, its output, and a closure that
// turns the output's gradient into the inputs'. The order of execution is already a topological
// order, so backward simply walks the steps in reverse.
//
// One gradient, step by step (docs/architecture.md draws it):
//   1. record() raises the count of pending uses of each input.
//   2. backward() runs a step when its output has a gradient; a step without one lies on a branch
//      that does not reach the loss, and is skipped. Either way its inputs' uses count down.
//   3. A closure asks target(x) where x's gradient goes: the first use overwrites (beta 0), the
//      others add (beta 1). A parameter's gradient goes straight into its slice of the arena.
//   4. A parameter whose pending uses reach 0 is final: if nothing was written it is zeroed, then
//      the ReadyListener hears of it. Parameters that were not used at all come first.
//   5. The output's value and gradient are given back to the arena: nobody needs them any more.
//
// Nothing is global: a replica has a tape. After the first steps nothing is allocated: nodes, steps
// and closures live in memory that the tape keeps.
#pragma once

#include <any>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "kernels/memory.h"
#include "nn/parameter.h"
#include "nn/variable.h"

namespace ringlet::nn {

class Axis;          // nn/axis.h
class CrossReplica;  // nn/cross_replica.h

/// Is told that a parameter's gradient is final in this optimiser step. Implemented by train/.
class ReadyListener {
 public:
  virtual ~ReadyListener() = default;
  virtual void gradient_ready(const Parameter& parameter) = 0;
};

/// What this micro-batch is of its shard's part in the step, for running statistics
/// (kernels/running_statistics.h).
struct BatchShare {
  double share = 1;    ///< its samples, over those of the step in the world; 0: a stand-in
  double so_far = 1;   ///< those of the shard until now, its own too
  double batches = 1;  ///< micro-batches of the shard until now
};

/// What operations may ask about the step that runs.
struct StepContext {
  bool training = true;    ///< dropout drops, and steps are recorded
  std::uint64_t seed = 0;  ///< of the run
  std::int64_t epoch = 0;
  std::int64_t first_sample = 0;  ///< position in the epoch of the batch's sample 0
  /// `epoch` and `first_sample` as a BatchPosition in device memory (kernels/batch_position.h), or
  /// absent. An operation that reads them there can be replayed for another batch.
  ConstView position = {};
  bool fuse = true;  ///< let neighbouring layers run as one operation (nn/layers/fusion.h)
  BatchShare share = {};
  /// The statistics of a batch are the world's, through this; null: its own. See cross_replica.h.
  CrossReplica* world = nullptr;
  /// The ranks over which parameters' rows are cut; null: this one has all. See axis.h.
  Axis* axis = nullptr;
  /// f32 [1] on the device: epochs of the run before this step; absent: no matter.
  ConstView epochs = {};
};

/// Which part of an optimiser step a backward pass is (gradient accumulation).
struct BackwardOptions {
  bool accumulate = false;  ///< add to what the parameters' gradients hold (not the first pass)
  bool last = true;         ///< gradients are final after this pass: the listener is told
};

class RecordedGraph;
class Tape;

/// What a step's closure sees during backward.
class Backward {
 public:
  struct Target {
    View view;       ///< where the gradient goes
    float beta = 0;  ///< 0: overwrite, 1: add
  };

  Backward(Tape& tape, Stream& stream) : tape_(tape), stream_(stream) {}
  Stream& stream() const { return stream_; }
  /// Whether anybody needs the gradient of x. If not, target(x) must not be called.
  bool wants(const Variable& x) const;
  /// The gradient of the step's output. The closure may overwrite it: nobody reads it afterwards.
  View gradient(const Variable& y) const;
  /// The same for a closure that only reads it. So the seed of backward need not be copied first.
  ConstView gradient_to_read(const Variable& y) const;
  /// Where to put the gradient of x, which is of the same shape; that of a parameter whose rows are
  /// sampled, of those that are listed. Call it once per use, right before writing. On processors,
  /// the tape's first backward() throws ContractError where nothing was written that should have
  /// been.
  Target target(const Variable& x) const;

  struct RowTargets {
    std::span<const View> views;  ///< by the rank whose samples it is of; one: for all of them
    float beta = 0;  ///< 1: add. Where one is for all, what comes later adds in any case
    View view(int rank) const {
      return views[views.size() == 1 ? 0 : static_cast<std::size_t>(rank)];
    }
    float beta_of(int rank) const { return rank > 0 && views.size() == 1 ? 1.0F : beta; }
  };
  /// The same for a parameter whose rows are cut over ranks: where the gradient of this rank's rows
  /// goes, by the rank whose samples it is of. All views are to be written.
  RowTargets row_targets(const Variable& x) const;
  /// Of a parameter that is_written_once: where the gradient of a whole step goes. It is to be
  /// overwritten in the step's last pass (Axis::is_last()); absent in the passes before.
  View step_target(const Variable& x, bool is_last) const;

 private:
  Tape& tape_;
  Stream& stream_;
};

class Tape {
 public:
  /// `arena` holds activations and their gradients; `parameters` are all of the model's.
  Tape(Device& device, Arena& arena, std::span<Parameter* const> parameters);
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  Device& device() const { return device_; }
  Stream& stream() const { return device_.compute(); }
  const StepContext& context() const { return context_; }

  /// To be called by an operation that passes the step's context to its kernels by value.
  void depend_on_position() { repeatable_ = false; }
  /// Whether the work recorded in the last step would be right for another position as well, so
  /// that its launches may be captured once and replayed.
  bool repeatable() const { return repeatable_; }

  /// Where keep_for_step() has its memory; `arena` outlives the tape. Tapes of one step's passes
  /// have it together: all make the same calls, so each call gets the same memory on every tape.
  /// Each begin() takes it from the start again.
  void keep_steps_in(Arena& arena) { step_arena_ = &arena; }

  /// Forgets the last step; its variables become invalid.
  void begin(const StepContext& context);

  /// A value from outside (a batch, targets) that wants no gradient; the memory stays the caller's.
  Variable constant(const View& value);
  /// The same where the gradient is wanted, by a stage before this tape, say. gradient() has it.
  Variable input(const View& value);
  /// A parameter as a variable; asked for twice in a step, it is the same node. One that is frozen
  /// is a constant.
  /// Throws ContractError for a parameter that was not registered with the model.
  Variable parameter(Parameter& parameter);
  /// A new value for an operation to fill, in activation memory. Activations have the type of the
  /// operation's input, as they have its layout: both are chosen once, at the model's input.
  Variable make(const Shape& shape, Layout layout, DType dtype = DType::f32);
  /// Memory that belongs to the step recorded next (a mask, probabilities).
  View keep(const Shape& shape, Layout layout, DType dtype = DType::f32);
  /// Memory that keeps what is in it from pass to pass. It is the same for the same call of each
  /// pass, so all training passes have to make the same ones, whatever their samples.
  View keep_for_step(const Shape& shape, DType dtype = DType::f32);
  /// Whether a step that is recorded with this input will have to find its gradient.
  bool wants_gradient(const Variable& x) const;
  /// `weight` as a product with activations of type `dtype` reads it: its value where that is of
  /// the type, else Parameter::narrow. Throws ContractError where it has neither.
  ConstView factor(const Variable& weight, DType dtype) const;

  /// Records that `operation` (a string literal) made `output` from `inputs`. `backward` is called
  /// with a Backward&; it must be trivially copyable: capture variables, views, specs and numbers.
  /// Inputs that are absent are passed over. Records nothing when no input wants a gradient or the
  /// context says that this is no training step. `spec`, if given, is what the operation was asked
  /// for besides its inputs; only a recorded graph keeps it.
  template <class F>
  void record(const char* operation, std::initializer_list<Variable> inputs, const Variable& output,
              F backward) {
    if (graph_ != nullptr) add_to_graph(operation, inputs, output, {});
    record_backward(operation, inputs, output, backward);
  }
  template <class Spec, class F>
  void record(const char* operation, std::initializer_list<Variable> inputs, const Variable& output,
              const Spec& spec, F backward) {
    if (graph_ != nullptr) add_to_graph(operation, inputs, output, spec);
    record_backward(operation, inputs, output, backward);
  }
  /// Computes the gradients of `y` times `dy` with respect to every parameter and input. Of a loss
  /// (one element), `dy` is f32 [1]. Of any other value that an operation has made, it is what is
  /// behind this tape has as its gradient, of its shape, type and layout; lanes beyond the batch
  /// hold zeros there. `listener` may be null. Once a step: activations are given back on the way,
  /// all but the value of `y`, which can be read until the next begin().
  void backward(const Variable& y, const View& dy, const BackwardOptions& options = {},
                ReadyListener* listener = nullptr);
  /// Of an input, after backward(), until the next begin(): like its value; zeros where nothing
  /// reached it.
  ConstView gradient(const Variable& input) const;

  /// Instead of backward() where this rank has no sample in the step: zero gradients (unless they
  /// accumulate), and the listener is told of every parameter.
  void backward_of_nothing(const BackwardOptions& options = {}, ReadyListener* listener = nullptr);

  /// While it lives, steps that are recorded belong to the layer `name`, which must outlive the
  /// tape's step; the time shows as "forward name" in a trace.
  class Scope {
   public:
    Scope(Tape& tape, const std::string& name);
    Scope(Tape& tape, std::string&& name) = delete;  // a temporary would not live long enough
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Tape& tape_;
    const char* outer_;
    std::int64_t begin_ns_;
  };

  /// Called with the layer and the operation each time an operation has filled its output; for
  /// finding the first broken number. Unset by default.
  using Inspector =
      std::function<void(const char* layer, const char* operation, const View& value)>;
  void set_inspector(Inspector inspector) { inspector_ = std::move(inspector); }

  /// Writes down the operations of the next step in `graph`, for a dry run (nn/recorded_graph.h).
  /// Null, as it is in training: no step costs anything for it.
  void set_graph(RecordedGraph* graph) { graph_ = graph; }

  /// Lets record() and backward() throw ContractError where a layer forgets what it has to do: a
  /// value that it made comes from no recorded operation, so that the gradient ends there in
  /// silence, or an operation asks for no target() of an input. For a dry run (nn/plan.h).
  void check_layers() { checks_layers_ = true; }

  /// Parameters whose gradient no recorded step of the last backward() wrote, by registration
  /// order.
  std::vector<const Parameter*> parameters_without_gradient() const;

  /// Number of uses of `parameter` in the step that was recorded last.
  int uses(const Parameter& parameter) const;
  /// Whether a layer has asked for it since begin().
  bool asked_for(const Parameter& parameter) const {
    return node_of_parameter_[static_cast<std::size_t>(parameter.id)] >= 0;
  }

 private:
  friend class Variable;
  friend class Backward;

  struct Node {
    View value{};
    View gradient{};
    Parameter* parameter = nullptr;
    int pending = 0;  // recorded uses that backward has not come to yet
    int uses = 0;
    bool wants_gradient = false;
    bool owns_value = false;     // the value lies in the arena and is released with its step
    bool owns_gradient = false;  // so does the gradient
    bool written = false;        // the gradient holds something of this backward pass
    bool seeded = false;         // the gradient is the seed, not copied yet
    bool is_input = false;       // its gradient stays until the next step
    bool recorded = false;       // as the output of an operation
    int targets = 0;             // asked for in this backward pass
    const char* layer = "";      // that made it
  };
  struct Step {
    const char* operation = "";
    const char* layer = "";
    int first_input = 0, inputs = 0;
    int first_kept = 0, kept = 0;
    int output = -1;
    Device* device = nullptr;
    void* closure = nullptr;
    void (*call)(void*, Backward&) = nullptr;
  };

  Node& node(const Variable& x) { return nodes_[index_of(x)]; }
  std::size_t index_of(const Variable& x) const;
  int add_node(const Node& node);
  void add_to_graph(const char* operation, std::initializer_list<Variable> inputs,
                    const Variable& output, std::any spec);
  template <class F>
  void record_backward(const char* operation, std::initializer_list<Variable> inputs,
                       const Variable& output, F backward) {
    static_assert(std::is_trivially_copyable_v<F> && std::is_trivially_destructible_v<F> &&
                  alignof(F) <= alignof(std::max_align_t));
    if (!begin_step(operation, inputs, output)) return;
    void* closure = new (closure_memory(sizeof(F), alignof(F))) F(backward);
    end_step(closure, [](void* f, Backward& context) { (*static_cast<F*>(f))(context); });
  }
  bool begin_step(const char* operation, std::initializer_list<Variable> inputs,
                  const Variable& output);
  void end_step(void* closure, void (*call)(void*, Backward&));
  void require_recorded(const Node& value) const;
  int targets_of(const Step& step, int input) const;
  void require_targets(const Step& step, const std::vector<int>& before) const;
  void* closure_memory(std::size_t bytes, std::size_t alignment);
  View write_target(Node& node, float& beta);
  bool adds(const Node& node) const;
  void require_written(const Step& step);
  void take_seed(Node& node);
  void start_from(const Variable& y, const View& dy);
  void zero_unreached_inputs();
  void run(const Step& step);
  void count_down(const Step& step, const BackwardOptions& options, ReadyListener* listener);
  void finish(Parameter& parameter, bool written, const BackwardOptions& options,
              ReadyListener* listener);
  void zero(const Parameter& parameter);
  void release(const Step& step);

  Device& device_;
  Arena& arena_;
  Arena* step_arena_ = nullptr;
  std::vector<Parameter*> parameters_;
  StepContext context_;
  bool repeatable_ = true;
  const char* layer_ = "";
  Inspector inspector_;
  bool checks_layers_ = false;
  bool anything_is_learnt_ = false;  // before the value that is made next
  RecordedGraph* graph_ = nullptr;

  std::vector<Node> nodes_;
  std::vector<Step> steps_;
  std::vector<int> inputs_;             // of all steps, one after the other
  std::vector<View> kept_;              // of all steps, and of the one recorded next
  std::size_t kept_recorded_ = 0;       // those that belong to recorded steps
  std::vector<int> node_of_parameter_;  // by Parameter::id, -1 where not used in this step
  View seed_;                           // of the backward pass that runs
  bool accumulate_ = false;             // options of the backward pass that runs
  bool backward_done_ = false;          // in this step
  bool marks_targets_;                  // until the first backward pass is over
  std::vector<View> marked_;            // of the closure that runs

  static constexpr std::size_t kChunkBytes = 1 << 16;
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::size_t chunk_ = 0, chunk_used_ = 0;
};

}  // namespace ringlet::nn
