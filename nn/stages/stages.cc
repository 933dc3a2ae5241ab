#include "nn/stages/stages.h"

#include <span>
#include <utility>

#include "nn/layers/sequential.h"
#include "nn/ops/elementwise.h"

namespace ringlet::nn {

namespace {

/// Neighbours of one Sequential that are whole in a stage, or one of which some units are.
struct Part {
  std::span<const Child> whole{};
  const Child* cut = nullptr;
  std::vector<Part> inner{};  // of `cut`
};

int units_in(const Child& child) {
  const Sequential* nested = sequence_in(*child.layer);
  if (nested == nullptr) return 1;
  int count = 0;
  for (const Child& inner : nested->children()) count += units_in(inner);
  return count;
}

/// The parts of units [begin, end) in `layers`, whose first unit is number `first`.
std::vector<Part> parts_of(std::span<const Child> layers, int first, int begin, int end) {
  std::vector<Part> parts;
  std::size_t whole = 0;  // layers before layers[i] that belong to the last part
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const int last = first + units_in(layers[i]);
    if (begin <= first && last <= end) {
      if (whole == 0) parts.emplace_back();
      ++whole;
      parts.back().whole = layers.subspan(i + 1 - whole, whole);
    } else if (first < end && begin < last) {
      const Sequential& nested = *sequence_in(*layers[i].layer);
      parts.push_back({.cut = &layers[i], .inner = parts_of(nested.children(), first, begin, end)});
      whole = 0;
    }
    first = last;
  }
  return parts;
}

Variable run(Tape& tape, const Variable& x, const std::vector<Part>& parts) {
  Variable value = x;
  for (const Part& part : parts) {
    if (part.cut == nullptr) {
      value = run_layers(tape, value, part.whole);
    } else {
      value = in_layer(tape, part.cut->name, [&] { return run(tape, value, part.inner); });
    }
  }
  return value;
}

void add_to(Registry& registry, const std::string& prefix, const std::vector<Part>& parts) {
  for (const Part& part : parts) {
    register_layers(registry, prefix, part.whole);
    if (part.cut != nullptr) add_to(registry, prefix + part.cut->name + ".", part.inner);
  }
}

class Stage : public Layer {
 public:
  explicit Stage(std::vector<Part> parts) : parts_(std::move(parts)) {}

  Variable forward(Tape& tape, const Variable& x) override {
    const Variable y = run(tape, x, parts_);
    // Nothing but a view of what came in, of a flatten, say: backward begins with a value that an
    // operation has made.
    const bool is_view = tape.context().training && !y.absent() && y.node() == x.node();
    return is_view ? scale(y, 1) : y;
  }
  void register_in(Registry& registry, const std::string& prefix) override {
    add_to(registry, prefix, parts_);
  }

 private:
  std::vector<Part> parts_;
};

/// A model that is one unit.
class WholeModel : public Layer {
 public:
  explicit WholeModel(Layer& model) : model_(model) {}
  Variable forward(Tape& tape, const Variable& x) override { return model_.forward(tape, x); }
  void register_in(Registry& registry, const std::string& prefix) override {
    model_.register_in(registry, prefix);
  }

 private:
  Layer& model_;
};

}  // namespace

std::string in_words(const StageCut& stage) {
  return "stage " + std::to_string(stage.index) + " (" + stage.layers + ")";
}

Stages cut_before(const Units& units, const std::vector<int>& begins) {
  units.require_stages(static_cast<int>(begins.size()) + 1);
  Stages stages{{.end = units.count()}};
  for (const int begin : begins) {
    require(stages.back().begin < begin && begin < units.count(), "stages",
            "begin with units of the model, ascending");
    units.require_begin(begin);
    stages.back().end = begin;
    stages.push_back(
        {.index = static_cast<int>(stages.size()), .begin = begin, .end = units.count()});
  }
  for (StageCut& stage : stages) stage.layers = units.in_words({stage.begin, stage.end});
  return stages;
}

std::unique_ptr<Layer> stage_of(Layer& model, const Units& units, int begin, int end) {
  require(0 <= begin && begin < end && end <= units.count(), "stage_of",
          "a stage has one unit at least, and those that there are");
  if (begin > 0) units.require_begin(begin);
  if (end < units.count()) units.require_begin(end);
  const Sequential* root = sequence_in(model);
  require((root != nullptr) == units.is_sequence(), "stage_of", "the units are of another model");
  if (root == nullptr) return std::make_unique<WholeModel>(model);
  int count = 0;
  for (const Child& child : root->children()) count += units_in(child);
  require(count == units.count(), "stage_of", "the units are of another model");
  return std::make_unique<Stage>(parts_of(root->children(), 0, begin, end));
}

BatchSpec batch_of(const Units& units, const StageCut& stage, const InputSpec& input) {
  BatchSpec whole = batch_of(input), batch = whole;
  batch.hands_on = stage.end < units.count();
  batch.tensors.clear();
  if (stage.begin == 0) {
    batch.tensors.push_back(whole.tensors.front());
  } else {
    const Crossing& value = units[stage.begin].input;
    batch.tensors.push_back({.name = kHandedOn,
                             .shape = value.shape,
                             .layout = value.layout,
                             .dtype = value.dtype,
                             .wants_gradient = value.wants_gradient});
  }
  if (!batch.hands_on) batch.tensors.push_back(whole.tensors.back());
  return batch;
}

Pass pass_of(Layer& stage, const Units& units, const StageCut& cut, const LossFunction& loss) {
  require(loss != nullptr, "plan_training", "the loss is an empty function");
  const bool is_first = cut.begin == 0, is_last = cut.end == units.count();
  return [&stage, loss, is_first, is_last](Tape& tape, const Batch& batch) {
    const Variable x = is_first ? batch.input(kImages) : batch[kHandedOn];
    const Variable y = stage.forward(tape, x);
    require(!y.absent(), "the model", "returns an empty variable; its forward() should return one");
    return is_last ? loss(y, batch[kTargets]) : y;
  };
}

Plan plan_training(Layer& stage, const Registry& registry, const Units& units, const StageCut& cut,
                   const InputSpec& input, const LossFunction& loss, bool fuse) {
  return plan_training(registry, batch_of(units, cut, input), pass_of(stage, units, cut, loss),
                       fuse);
}

}  // namespace ringlet::nn
