// Optimizer: changes the parameters by the summed gradient, and owns what it keeps between steps.
//
// What it keeps lies in named arenas. Saved states, resuming, the broadcast from rank 0,
// --check-replicas and the search for broken numbers go over state(), so a new optimiser needs no
// code there: its kernels, a pair like sgd.{h,cc}, and one line in optimizer.cc.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "kernels/memory.h"
#include "nn/parameters.h"
#include "train/options.h"

namespace ringlet::train {

/// A part of an optimiser's state: one number for each of the parameters' numbers.
struct StateArena {
  std::string name;  ///< such as "velocity"; an optimiser's arenas have different ones
  Tensor numbers;    ///< f32 [plan.elements], in the order of the plan
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Updates all parameters with the gradients in arena 0, which are means over the world's
  /// samples. rates: f32 [2] on the device, learning rate and momentum. Stream-ordered; what
  /// changes from step to step is read on the device, so that a captured graph can replay it.
  virtual void step(ConstView rates) = 0;

  /// All that the next step depends on, besides parameters, gradients and rates.
  std::span<const StateArena> state() const { return state_; }

 protected:
  /// Allocates the arenas and fills them with zeros. Device and parameters outlive the optimiser.
  Optimizer(Device& device, const nn::Parameters& parameters,
            std::initializer_list<const char*> arenas);

  Stream& stream() const { return device_.compute(); }
  View values() const { return parameters_.values(); }  ///< f32 [plan.elements]
  ConstView gradients() const;                          ///< f32 [plan.elements]
  View arena(std::size_t index) const { return state_[index].numbers; }

 private:
  Device& device_;
  const nn::Parameters& parameters_;
  std::vector<StateArena> state_;
};

/// An optimiser that recipes can name.
struct OptimizerEntry {
  const char* name;
  /// Throws ContractError, naming the flag, where the recipe lacks what the optimiser needs.
  void (*check)(const Recipe& recipe);
  MakeOptimizer make;
};

/// All optimisers, the default first.
std::span<const OptimizerEntry> optimizers();
/// Throws ContractError naming the choices.
const OptimizerEntry& find_optimizer(const std::string& name);

/// The optimiser that `recipe` names, or what `own` makes.
std::unique_ptr<Optimizer> make_optimizer(Device& device, const nn::Parameters& parameters,
                                          const Recipe& recipe, const MakeOptimizer& own = {});

/// Names of the arenas: what load_state() (train/files/state.h) wants to know.
std::vector<std::string> names_of(std::span<const StateArena> state);

}  // namespace ringlet::train
