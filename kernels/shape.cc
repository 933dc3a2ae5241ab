#include "kernels/shape.h"

namespace ringlet {

void Shape::throw_uncountable() const {
  throw ContractError("Shape: " + to_string() + " has more elements than any memory");
}

Shape Shape::with_batch(std::int64_t n) const {
  Shape shape = *this;
  require(rank_ > 0, "Shape::with_batch", "a scalar has no batch");
  shape.extents_[0] = n;
  shape.require_countable();
  return shape;
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string((*this)[i]);
  }
  return text + "]";
}

}  // namespace ringlet
