// Units: a model as the row of layers that stages are cut from.
//
// A unit is a layer of the root, an nn::Sequential; where that layer is a Sequential itself, its
// layers are units instead, and so on: "conv1", "layer2.1", "avgpool", "fc". The model is not
// rewritten. Any other layer is one unit, whatever is in it: a ResidualBlock, say. So one value
// crosses the boundary between two units.
//
// Between some neighbours no stage may begin: where they run as one operation (nn/layers/fusion.h),
// which a cut would change in speed and in bits, where units on both sides use one parameter, and
// where nothing before is learnt: no gradient goes back over such a cut.
// A dry run of the model's input tells.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "nn/plan.h"

namespace ringlet::nn {

class Sequential;  // nn/layers/sequential.h

/// A value that goes from one unit to the next, of a batch as large as the dry run's.
struct Crossing {
  Shape shape;
  Layout layout = Layout::nchw;
  DType dtype = DType::f32;
  std::int64_t bytes = 0;       ///< of its memory
  bool wants_gradient = false;  ///< something is learnt before it
};

struct Unit {
  std::string name;
  /// The units that run as one with it: [group_begin, group_end).
  int group_begin = 0, group_end = 0;
  Crossing input{};  ///< what it takes; of its group's first unit alone
  /// A parameter that is used, or registered, by this unit or a later one and by an earlier one;
  /// empty: none.
  std::string tied{};
};

class Units {
 public:
  /// `is_sequence`: the root is an nn::Sequential.
  Units(std::vector<Unit> units, bool is_sequence)
      : units_(std::move(units)), is_sequence_(is_sequence) {}

  int count() const { return static_cast<int>(units_.size()); }
  const Unit& operator[](int unit) const { return units_.at(static_cast<std::size_t>(unit)); }
  bool is_sequence() const { return is_sequence_; }

  /// Whether a stage may begin with `unit`. One always begins with unit 0.
  bool may_begin(int unit) const;
  /// Throws ContractError that names what the cut before `unit` would split.
  void require_begin(int unit) const;
  /// All units but the first that a stage may begin with, ascending.
  std::vector<int> begins() const;
  /// Throws ContractError where the model's root is no nn::Sequential.
  void require_sequence() const;
  /// Throws ContractError where the model cannot be cut into so many stages.
  void require_stages(int stages) const;

  /// The units of this name, or of a Sequential of this name: [begin, end). Throws ContractError
  /// that lists the units where there is none, or where they are not one range.
  struct Range {
    int begin = 0, end = 0;
  };
  Range find(const std::string& name) const;
  /// Units [begin, end) in as few names as `find` takes: "layer3 .. fc".
  std::string in_words(Range range) const;
  /// The same as a list of all: "conv1, bn1, layer1.0 .. layer1.2, fc".
  std::string list(Range range) const;
  /// The end of a message about them: "; the units are conv1, ...".
  std::string all() const;

 private:
  bool names(const std::string& name, int unit) const;
  std::string shortest(int unit, Range within) const;

  std::vector<Unit> units_;
  bool is_sequence_;
};

/// `registry` is of the whole model. A model whose root is no Sequential is one unit. Throws what
/// plan_training() throws where a layer does not fit its input.
Units units_of(Layer& model, const Registry& registry, const InputSpec& input, bool fuse = true);

/// The root or a layer of it as a Sequential with layers, or null. What is only derived from one
/// may have a forward of its own, and is one unit.
const Sequential* sequence_in(const Layer& layer);

}  // namespace ringlet::nn
