#include "nn/recorded_graph.h"

#include <algorithm>
#include <utility>

#include "nn/dry_run.h"

namespace ringlet::nn {

int RecordedGraph::find(const Variable& x) const {
  const auto same = std::find_if(values_.begin(), values_.end(), [&x](const Value& value) {
    return value.node == x.node() && value.shape == x.shape();
  });
  return same == values_.end() ? kAbsent : static_cast<int>(same - values_.begin());
}

int RecordedGraph::find_or_add(const Variable& x) {
  if (x.absent()) return kAbsent;
  const int known = find(x);
  if (known != kAbsent) return known;
  values_.push_back({x.node(), x.shape(), x.value().dtype()});
  return static_cast<int>(values_.size()) - 1;
}

void RecordedGraph::add(const char* operation, std::initializer_list<Variable> inputs,
                        const Variable& output, std::any spec) {
  Step step;
  step.operation = operation;
  step.spec = std::move(spec);
  for (const std::string& name : path_) step.layer += (step.layer.empty() ? "" : ".") + name;
  for (const Variable& input : inputs) step.inputs.push_back(find_or_add(input));
  step.output = find_or_add(output);
  steps_.push_back(std::move(step));
}

void RecordedGraph::add_parameter(const Variable& x, const Parameter& parameter) {
  values_[static_cast<std::size_t>(find_or_add(x))].parameter = &parameter;
}

void RecordedGraph::add_reshape(const Variable& from, const Variable& to) {
  if (find(to) == kAbsent) add("reshape", {from}, to, {});
}

void RecordedGraph::set_ends(const Variable& input, const Variable& output) {
  input_ = find_or_add(input);
  output_ = find_or_add(output);
}

RecordedGraph record_graph(Layer& model, const Registry& registry, const Shape& input,
                           DType activations) {
  RecordedGraph graph;
  DryRun run(registry, activations);
  Arena arena(run.device, Arena::kUnlimited);
  Tape tape(run.device, arena, registry.parameters);
  tape.set_graph(&graph);
  tape.begin({.training = false, .fuse = false});
  const Variable x = tape.constant(run.external(input, activations, Layout::nchw));
  graph.set_ends(x, model.forward(tape, x));
  return graph;
}

}  // namespace ringlet::nn
