// RecordedGraph: the operations of a forward pass, in their order, each with its specification,
// its inputs and its output. A dry run without memory records it; code that writes a model in
// another form, such as ONNX, reads it. Operations that ran as one in a step are recorded apart.
#pragma once

#include <any>
#include <initializer_list>
#include <string>
#include <vector>

#include "nn/layer.h"

namespace ringlet::nn {

class RecordedGraph {
 public:
  static constexpr int kAbsent = -1;  ///< instead of a value: an optional input that was left out

  struct Value {
    int node = -1;  ///< on the tape
    Shape shape;
    DType dtype = DType::f32;
    const Parameter* parameter = nullptr;  ///< null for the model's input and for results
  };
  struct Step {
    std::string layer{};        ///< its path in the model: "block1.conv2"
    std::string operation{};    ///< as recorded: "conv2d"
    std::any spec{};            ///< what the operation passes to Tape::record; empty where nothing
    std::vector<int> inputs{};  ///< indices of values, or kAbsent
    int output = kAbsent;
  };

  const std::vector<Value>& values() const { return values_; }
  const std::vector<Step>& steps() const { return steps_; }
  int input() const { return input_; }    ///< value that the model was given
  int output() const { return output_; }  ///< value that the model gave

  /// Steps recorded from now on belong to the layer `name` in the present one, until leave().
  void enter(const std::string& name) { path_.push_back(name); }
  void leave() { path_.pop_back(); }
  void add(const char* operation, std::initializer_list<Variable> inputs, const Variable& output,
           std::any spec);
  void add_parameter(const Variable& x, const Parameter& parameter);
  /// The operation "reshape" without a specification: `to` is `from` seen with another shape.
  void add_reshape(const Variable& from, const Variable& to);
  void set_ends(const Variable& input, const Variable& output);

 private:
  /// Its index; kAbsent where the value is not known.
  int find(const Variable& x) const;
  int find_or_add(const Variable& x);

  std::vector<std::string> path_;
  std::vector<Value> values_;
  std::vector<Step> steps_;
  int input_ = kAbsent;
  int output_ = kAbsent;
};

/// Records what `model` (registered as `registry`) does with one batch [N, ...] outside training,
/// on the meta device, with activations of that type. Throws ContractError when a layer does not
/// fit its input.
RecordedGraph record_graph(Layer& model, const Registry& registry, const Shape& input,
                           DType activations = DType::f32);

}  // namespace ringlet::nn
