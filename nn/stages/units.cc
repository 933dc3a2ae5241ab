#include "nn/stages/units.h"

#include <algorithm>
#include <span>
#include <typeinfo>
#include <utility>

#include "nn/dry_run.h"
#include "nn/layers/sequential.h"

namespace ringlet::nn {

namespace {

std::string parent_of(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

bool is_in(const std::string& name, const std::string& parent) {
  return name.size() > parent.size() && name.compare(0, parent.size(), parent) == 0 &&
         name[parent.size()] == '.';
}

/// Walks through a model on a tape, and notes its units on the way.
class Walk {
 public:
  Walk(Tape& tape, const Registry& registry)
      : tape_(tape), registry_(registry), users_(registry.parameters.size()) {}

  Variable through(const Variable& x, std::span<const Child> layers, const std::string& prefix) {
    Variable value = x;
    while (!layers.empty()) {
      const Child& first = layers.front();
      const Sequential* nested = sequence_in(*first.layer);
      if (nested != nullptr) {
        value = in_layer(tape_, first.name, [&] {
          return through(value, nested->children(), prefix + first.name + ".");
        });
        layers = layers.subspan(1);
        continue;
      }
      const Fused done = run_first(tape_, value, layers);
      add_group(value, layers.first(done.layers), prefix);
      value = done.y;
      layers = layers.subspan(done.layers);
    }
    return value;
  }

  std::vector<Unit> units() {
    for (std::size_t i = 0; i < users_.size(); ++i) mark_tied(i);
    return std::move(units_);
  }

 private:
  struct Users {
    int uses = 0;
    int first = -1, last = -1;  // units
    void add(int unit_begin, int unit_end) {
      if (first < 0) first = unit_begin;
      first = std::min(first, unit_begin);
      last = std::max(last, unit_end - 1);
    }
  };

  void add_group(const Variable& x, std::span<const Child> layers, const std::string& prefix) {
    const int begin = static_cast<int>(units_.size()),
              end = begin + static_cast<int>(layers.size());
    for (const Child& child : layers) {
      units_.push_back({.name = prefix + child.name, .group_begin = begin, .group_end = end});
    }
    units_[static_cast<std::size_t>(begin)].input = {.shape = x.shape(),
                                                     .layout = x.layout(),
                                                     .dtype = x.dtype(),
                                                     .bytes = x.value().bytes(),
                                                     .wants_gradient = tape_.wants_gradient(x)};
    for (std::size_t i = 0; i < users_.size(); ++i) {
      const int uses = tape_.uses(*registry_.parameters[i]);
      if (uses > users_[i].uses) users_[i].add(begin, end);
      users_[i].uses = uses;
    }
  }

  void mark_tied(std::size_t parameter) {
    Users& users = users_[parameter];
    const std::string& name = registry_.parameters[parameter]->name;
    for (int unit = 0; users.first >= 0 && unit < static_cast<int>(units_.size()); ++unit) {
      if (is_in(name, units_[static_cast<std::size_t>(unit)].name)) users.add(unit, unit + 1);
    }
    for (int unit = users.first + 1; unit <= users.last; ++unit) {
      units_[static_cast<std::size_t>(unit)].tied = name;
    }
  }

  Tape& tape_;
  const Registry& registry_;
  std::vector<Users> users_;  // by Parameter::id
  std::vector<Unit> units_;
};

}  // namespace

const Sequential* sequence_in(const Layer& layer) {
  if (typeid(layer) != typeid(Sequential)) return nullptr;
  const auto& sequence = static_cast<const Sequential&>(layer);
  return sequence.children().empty() ? nullptr : &sequence;
}

Units units_of(Layer& model, const Registry& registry, const InputSpec& input, bool fuse) {
  const Sequential* root = sequence_in(model);
  if (root == nullptr) return {{{.name = "the model", .group_end = 1}}, false};
  DryRun run(registry, input.activations, input.layout);
  Arena activations(run.device, input.memory), step(run.device, input.memory);
  Tape tape(run.device, activations, registry.parameters);
  tape.keep_steps_in(step);
  tape.begin({.fuse = fuse, .axis = run.axis(input.shape[0])});
  const View batch = run.external(input.shape, DType::f32, input.layout);
  Walk walk(tape, registry);
  walk.through(model_input(tape, batch, input.activations), root->children(), "");
  return {walk.units(), true};
}

bool Units::may_begin(int unit) const {
  const Unit& at = (*this)[unit];
  return unit == at.group_begin && at.tied.empty() && at.input.wants_gradient;
}

void Units::require_begin(int unit) const {
  if (may_begin(unit)) return;
  const Unit& at = (*this)[unit];
  const std::string cut = "a cut between " + (*this)[unit - 1].name + " and " + at.name;
  if (unit == at.group_begin && !at.tied.empty()) {
    throw ContractError("stages: " + cut + " leaves the parameter " + at.tied +
                        " to stages on both sides, and tied weights have to be in one stage; cut "
                        "elsewhere" +
                        all());
  }
  if (unit == at.group_begin) {
    throw ContractError("stages: " + cut + " leaves nothing to learn to the stages before it, " +
                        "which get no gradient; cut behind a layer with parameters" + all());
  }
  std::string remedy;
  if (at.group_begin > 0) remedy = "before " + (*this)[at.group_begin].name;
  if (at.group_end < count()) {
    remedy += (remedy.empty() ? "" : " or ") + ("behind " + (*this)[at.group_end - 1].name);
  }
  throw ContractError("stages: " + cut + " splits " + list({at.group_begin, at.group_end}) +
                      ", which run as one operation; cut " + (remedy.empty() ? "nowhere" : remedy) +
                      all());
}

std::vector<int> Units::begins() const {
  std::vector<int> all;
  for (int unit = 1; unit < count(); ++unit) {
    if (may_begin(unit)) all.push_back(unit);
  }
  return all;
}

void Units::require_sequence() const {
  require(is_sequence_, "stages",
          "the model is one unit and cannot be cut; the model's root has to be an nn::Sequential, "
          "and no class that derives from it");
}

void Units::require_stages(int stages) const {
  if (stages > 1) require_sequence();
  const auto most = static_cast<int>(begins().size()) + 1;
  if (stages <= most) return;
  const std::string apart = most < count() ? ", of which some have to stay together" : "";
  throw ContractError("stages: " + std::to_string(stages) + " stages of a model with " +
                      std::to_string(count()) + " units" + apart + "; ask for " +
                      std::to_string(most) + " at most" + all());
}

bool Units::names(const std::string& name, int unit) const {
  return (*this)[unit].name == name || is_in((*this)[unit].name, name);
}

Units::Range Units::find(const std::string& name) const {
  Range range;
  int found = 0;
  bool twice = false;
  for (int unit = 0; unit < count(); ++unit) {
    if (!names(name, unit)) continue;
    twice = twice || (found > 0 && (*this)[range.begin].name == (*this)[unit].name);
    if (found++ == 0) range.begin = unit;
    range.end = unit + 1;
  }
  if (found == 0) throw ContractError("stages: there is no unit '" + name + "'" + all());
  if (twice || found < range.end - range.begin) {
    throw ContractError("stages: several layers of the model are named '" + name +
                        "'; give them different names" + all());
  }
  return range;
}

std::string Units::shortest(int unit, Range within) const {
  const std::string& whole = (*this)[unit].name;
  const bool begins = unit == within.begin;
  for (std::size_t dot = whole.find('.'); dot != std::string::npos;
       dot = whole.find('.', dot + 1)) {
    const std::string name = whole.substr(0, dot);
    int first = count(), last = -1;
    for (int i = 0; i < count(); ++i) {
      if (!names(name, i)) continue;
      first = std::min(first, i);
      last = i;
    }
    const bool fits = first >= within.begin && last < within.end;
    if (fits && (begins ? first == unit : last == unit)) return name;
  }
  return whole;
}

std::string Units::in_words(Range range) const {
  const std::string first = shortest(range.begin, range);
  std::string last = (*this)[range.end - 1].name;
  if (range.end - range.begin > 1) last = shortest(range.end - 1, range);
  if (range.end - range.begin == 1 || first == last) return first;
  return first + " .. " + last;
}

std::string Units::list(Range range) const {
  std::string text;
  for (int unit = range.begin, next = 0; unit < range.end; unit = next) {
    const std::string parent = parent_of((*this)[unit].name);
    next = unit + 1;
    while (!parent.empty() && next < range.end && parent_of((*this)[next].name) == parent) ++next;
    if (next - unit < 3) next = unit + 1;
    text += (text.empty() ? "" : ", ") + (*this)[unit].name;
    if (next > unit + 1) text += " .. " + (*this)[next - 1].name;
  }
  return text;
}

std::string Units::all() const { return "; the units are " + list({0, count()}); }

}  // namespace ringlet::nn
