#include "kernels/shape.h"

#include "base/error.h"

namespace ringlet {

Shape::Shape(std::initializer_list<std::int64_t> extents) {
  require(extents.size() <= kMaxRank, "Shape", "at most four extents");
  for (const std::int64_t extent : extents) {
    require(extent >= 0, "Shape", "an extent is negative");
    extents_[static_cast<std::size_t>(rank_++)] = extent;
  }
  require_countable();
}

void Shape::require_countable() const {
  std::int64_t product = 1;
  for (int i = 0; i < rank_; ++i) {
    const std::int64_t extent = (*this)[i];
    if (extent > 0 && product > kMostElements / extent) {
      throw ContractError("Shape: " + to_string() + " has more elements than any memory");
    }
    product *= extent;
  }
}

Shape Shape::with_batch(std::int64_t n) const {
  Shape shape = *this;
  require(rank_ > 0, "Shape::with_batch", "a scalar has no batch");
  shape.extents_[0] = n;
  shape.require_countable();
  return shape;
}

bool Shape::operator==(const Shape& other) const {
  if (rank_ != other.rank_) return false;
  for (int i = 0; i < rank_; ++i) {
    if ((*this)[i] != other[i]) return false;
  }
  return true;
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
