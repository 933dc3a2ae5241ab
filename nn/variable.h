// Variable: a handle to a value on a tape. As small as an index; copies name the same value.
#pragma once

#include "kernels/tensor.h"

namespace ringlet::nn {

class Tape;

/// A value that an operation takes or made. It is valid until its tape begins the next step.
/// A reshaped variable is the same node seen with another shape: no step, no copy, no memory.
class Variable {
 public:
  Variable() = default;
  Variable(Tape& tape, int node, const Shape& shape) : tape_(&tape), node_(node), shape_(shape) {}

  Tape& tape() const {
    require(tape_ != nullptr, "Variable::tape", "the variable is empty; a layer should return one");
    return *tape_;
  }
  int node() const { return node_; }
  const Shape& shape() const { return shape_; }
  Variable reshaped(const Shape& shape) const;
  /// True for a default-constructed variable: an optional argument that was left out.
  bool absent() const { return tape_ == nullptr; }

  /// The value with this variable's shape.
  View value() const;
  Layout layout() const { return value().layout(); }
  DType dtype() const { return value().dtype(); }

 private:
  Tape* tape_ = nullptr;
  int node_ = -1;
  Shape shape_;
};

}  // namespace ringlet::nn
