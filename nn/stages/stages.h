// Stages: a model cut into ranges of its units (nn/stages/units.h), each for a device of its own.
//
//   conv1 .. layer2.1 | layer3.0 .. fc      stage 0 and stage 1 of resnet18
//
// A stage is a Layer over the model's own layers: it runs units [begin, end) as the whole model
// does, with the same operations, names, fusion and messages, and registers their parameters alone,
// under the model's names. So files, initial values and dropout know no stages, and two stages one
// behind the other compute the bits of the whole:
//
//   forward     y0 = stage 0(x);  x1 = tape1.input(y0);  loss = f(stage 1(x1))
//   backward    tape1.backward(loss, 1);  tape0.backward(y0, tape1.gradient(x1))
//
// Where Crossing::wants_gradient is false, x1 is tape1.constant(y0), and tape 0 learns nothing.
//
// By hand, stages are written as `FIRST..LAST[=DEVICES]`, or one name alone, with commas between
// them, in the model's order. A name is a unit's, or that of a Sequential, which stands for all its
// units: "conv1..layer2=cpu:0,layer3..fc=cpu:1".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nn/stages/units.h"

namespace ringlet::nn {

struct StageCut {
  int index = 0;           ///< from 0
  int begin = 0, end = 0;  ///< units
  std::string layers{};    ///< "layer3 .. fc"
  std::string devices{};   ///< as written; empty: nothing was
};

/// Of all stages, in the model's order.
using Stages = std::vector<StageCut>;

/// "stage 1 (layer3 .. fc)"
std::string in_words(const StageCut& stage);

/// Stages that begin with unit 0 and with `begins`, ascending. Throws ContractError as
/// Units::require_begin() does.
Stages cut_before(const Units& units, const std::vector<int>& begins);

/// Stages as written by hand. Throws ContractError, whose message lists the units, for a name that
/// there is not, for units that no stage or two stages have, stages in another order than the
/// model's, empty parts, devices for some stages alone, more stages than units, and as
/// Units::require_begin() does.
Stages parse_stages(const std::string& text, const Units& units);

/// Units [begin, end) of `model`, which outlives the stage and is not rewritten. To be registered
/// in a registry of its own (register_model), after which one of the whole model is of no use: the
/// parameters have other ids. Throws ContractError as Units::require_begin() does.
std::unique_ptr<Layer> stage_of(Layer& model, const Units& units, int begin, int end);

/// What a stage takes in its dry run, and in each pass: `input` as the whole model's where it is
/// the first, else what crosses its beginning, under this name. The last one has targets, too.
inline constexpr const char* kHandedOn = "handed on";
BatchSpec batch_of(const Units& units, const StageCut& stage, const InputSpec& input);
/// Its forward: the loss where it is the last, else what the next one takes.
Pass pass_of(Layer& stage, const Units& units, const StageCut& cut, const LossFunction& loss);

/// As plan_training() of a whole model; `registry` is the stage's.
Plan plan_training(Layer& stage, const Registry& registry, const Units& units, const StageCut& cut,
                   const InputSpec& input, const LossFunction& loss, bool fuse = true);

}  // namespace ringlet::nn
