// Optimizer: changes the parameters by the summed gradient, and owns what it keeps between steps.
//
// What it keeps lies in named arenas. Saved states, resuming, the broadcast from rank 0,
// --check-replicas and the search for broken numbers go over state(), so a new optimiser needs no
// code there: its kernels, a pair like sgd.{h,cc}, and one line in optimizer.cc.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/memory.h"
#include "nn/parameters.h"
#include "train/optimizers/weight_average.h"
#include "train/recipe/options.h"

namespace ringlet::train {

/// What is read on the device in one step: learning rate, momentum, the scale of the gradient (1,
/// or what --clip-norm and --precision f16 make of it), that of parameters of the loss (which no
/// --clip-norm shortens), from kOwnRates on four numbers that the optimiser wants, the epochs
/// before the step, for a loss, and what --ema's average takes of the new weights. From kHeadRates
/// on come the rate, the momentum and the four numbers once more, for the parameters that have a
/// rate of their own (--head-lr).
using StepRates = std::array<float, 16>;
inline constexpr std::int64_t kGradientScale = 2, kLossGradientScale = 3, kOwnRates = 4,
                              kEpochs = 8, kAverageShare = 9, kHeadRates = 10,
                              kNumbersOfOptimizer = 4;

/// A part of an optimiser's state.
struct ArenaSpec {
  static constexpr int kParameters = -1, kBuffers = -2;

  ArenaSpec(std::string the_name, int of = kParameters) : name(std::move(the_name)), rows_of(of) {}
  ArenaSpec(const char* the_name) : name(the_name) {}

  std::string name;  ///< such as "velocity"; an optimiser's arenas have different ones
  /// kParameters: one number for each of the parameters' numbers; kBuffers: one for each of the
  /// buffers'; else a Parameter::id: one for each row of this parameter alone.
  int rows_of = kParameters;
  bool is_of_parameters() const { return rows_of == kParameters; }
  bool is_of_buffers() const { return rows_of == kBuffers; }
  bool is_of_rows() const { return rows_of >= 0; }
  bool operator==(const ArenaSpec&) const = default;
};
struct StateArena : ArenaSpec {
  StateArena(const ArenaSpec& spec, Tensor the_numbers)
      : ArenaSpec(spec), numbers(std::move(the_numbers)) {}
  /// f32 [plan.elements], in the order of the plan; of buffers as Parameters::buffers(); of rows
  /// [those held].
  Tensor numbers;
};

/// The parameter of which a step has some rows alone; null: there is none.
const nn::Parameter* sampled_of(const nn::Parameters& parameters);

class Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Updates all parameters with the gradients in arena 0, which are means over the world's
  /// samples. rates: f32 [16] on the device, what rates_with_head() gave. Stream-ordered; what
  /// changes from step to step is read on the device, so that a captured graph can replay it.
  virtual void step(ConstView rates) = 0;

  /// The numbers of a step; computed on the host before it. A scale of 1 stands where --clip-norm
  /// or --precision f16 will write another.
  virtual StepRates rates_of(const Rates& rates) const {
    return {static_cast<float>(rates.lr), static_cast<float>(rates.momentum), 1, 1};
  }

  /// The same with those of the head, whose learning rate is `head_lr`.
  StepRates rates_with_head(const Rates& rates, double head_lr) const;

  /// Whether step() takes Part::rate and Part::own for each part: --head-lr needs that.
  virtual bool has_head_rate() const { return false; }
  /// Whether step() multiplies the gradient by its scale: --clip-norm needs that.
  virtual bool scales_gradient() const { return false; }
  /// Whether step() changes nothing where that scale is 0, whatever the gradient holds: --precision
  /// f16 needs that, and the above.
  virtual bool skips_steps() const { return false; }

  /// Whether step() updates the rows that a step lists, where it lists some of a parameter alone
  /// (Parameter::sampling): --sample-rate needs that.
  virtual bool updates_rows() const { return false; }

  /// All that the next step depends on, besides parameters, gradients and rates.
  std::span<const StateArena> state() const { return state_; }

  /// Keeps a moving average of the weights in two further arenas of state() from now on
  /// (weight_average.h). To be called before the first step, and once at most.
  void keep_average(double decay);
  /// Null: there is none.
  WeightAverage* average() { return average_.get(); }

 protected:
  /// Allocates the arenas and fills them with zeros. Device and parameters outlive the optimiser.
  Optimizer(Device& device, const nn::Parameters& parameters, const std::vector<ArenaSpec>& arenas);

  /// Parameters that are updated with the same rates and one scale of the gradient: the model's
  /// head, if it has a rate of its own, the model's others, then the loss's. None that are frozen.
  struct Part {
    std::int64_t begin = 0, end = 0;  ///< in the arenas
    ConstView scale;                  ///< f32 [1]
    ConstView rate;                   ///< f32 [2]: learning rate and momentum
    ConstView own;                    ///< f32 [4]: what rates_of() has from kOwnRates on
    ConstView of(const ConstView& arena) const { return arena.slice(begin, end); }
    View of(const View& arena) const { return arena.slice(begin, end); }
    /// Of a table for updates (kernels/decay_table.h); may be absent.
    ConstView decays_of(const ConstView& table) const;
  };
  /// Rows of a parameter of the loss of which a step has some alone (Parameter::sampling).
  struct SampledRows {
    const nn::Parameters& parameters;
    const nn::PlannedParameter& planned;
    ConstView scale;     ///< f32 [1]
    ConstView listed;    ///< i32 [R]: the step's rows
    ConstView gradient;  ///< f32 [R, D]
    /// All rows that this rank has: f32 [N, D].
    View of(const View& arena) const { return parameters.part_of(arena, planned); }
  };
  /// Calls update(part) for those that there are, or update_rows(rows) in the place of the loss's.
  /// rates: what step() got.
  template <class Update, class UpdateRows>
  void for_each_part(const ConstView& rates, Update update, UpdateRows update_rows) const {
    const nn::Plan& plan = parameters_.plan();
    const ConstView of_model = rates.slice(kGradientScale, kGradientScale + 1);
    const ConstView rate = rates.slice(0, 2);
    const ConstView own = rates.slice(kOwnRates, kOwnRates + kNumbersOfOptimizer);
    const std::int64_t head = plan.frozen + plan.head;
    if (plan.head > 0) {
      constexpr std::int64_t kOwn = kHeadRates + 2;
      update(Part{plan.frozen, head, of_model, rates.slice(kHeadRates, kOwn),
                  rates.slice(kOwn, kOwn + kNumbersOfOptimizer)});
    }
    if (plan.of_model() > head) update(Part{head, plan.of_model(), of_model, rate, own});
    if (plan.of_loss == 0) return;
    const ConstView scale = rates.slice(kLossGradientScale, kLossGradientScale + 1);
    const nn::Parameter* sampled = sampled_of(parameters_);
    if (sampled == nullptr) return update(Part{plan.of_model(), plan.elements, scale, rate, own});
    if (sampled->room == 0) return;
    const nn::PlannedParameter& planned = plan.parameters.back();
    const ConstView gradient = gradients().slice(planned.begin, planned.gradient_end());
    update_rows(SampledRows{parameters_, planned, scale, sampled->listed,
                            gradient.reshaped(planned.gradient())});
  }

  Stream& stream() const { return device_.compute(); }
  View values() const { return parameters_.values(); }  ///< f32 [plan.elements]
  ConstView gradients() const;                          ///< f32 [plan.with_gradient()]
  View arena(std::size_t index) const { return state_[index].numbers; }

 private:
  void add_arena(const ArenaSpec& spec);

  Device& device_;
  const nn::Parameters& parameters_;
  std::vector<StateArena> state_;
  std::unique_ptr<WeightAverage> average_;
};

/// An optimiser that recipes can name.
struct OptimizerEntry {
  const char* name;
  /// Throws ContractError, naming the flag, where the recipe lacks what the optimiser needs; may be
  /// null. What belongs to other optimisers, the rows of the options refuse.
  void (*check)(const Recipe& recipe) = nullptr;
  MakeOptimizer make{};
  /// Sets the rates with which a recipe made for another optimiser begins; may be null.
  void (*set_defaults)(Recipe& recipe) = nullptr;
};

/// Whether the device writes the scale of the gradient in each step of such a recipe.
bool writes_gradient_scale(const Recipe& recipe);

/// All optimisers, the default first.
std::span<const OptimizerEntry> optimizers();
/// Throws ContractError naming the choices.
const OptimizerEntry& find_optimizer(const std::string& name);

/// Throws ContractError where the optimiser that `recipe` names is not known, or lacks something.
void check_optimizer(const Recipe& recipe);

/// Lets the recipe name this optimiser. Where it named another, the rates become this one's
/// defaults.
void choose_optimizer(Recipe& recipe, const std::string& name);

/// The optimiser that `recipe` names, or what `own` makes.
std::unique_ptr<Optimizer> make_optimizer(Device& device, const nn::Parameters& parameters,
                                          const Recipe& recipe, const MakeOptimizer& own = {});

/// Of the arenas: what load_state() (train/files/state.h) wants to know.
std::vector<ArenaSpec> specs_of(std::span<const StateArena> state);

}  // namespace ringlet::train
