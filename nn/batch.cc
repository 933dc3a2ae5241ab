#include "nn/batch.h"

#include <algorithm>
#include <span>

#include "nn/cast.h"

namespace ringlet::nn {

void Batch::add(std::string_view name, const Variable& tensor) {
  require(count_ < kMost, "Batch", "a batch has at most twelve tensors");
  const auto known = std::span(tensors_).first(count_);
  require(std::ranges::find(known, name, &Named::name) == known.end(), "Batch",
          "a batch has one tensor of a name");
  tensors_[count_++] = {name, tensor};
}

const Variable& Batch::operator[](std::string_view name) const {
  std::string known;
  for (std::size_t i = 0; i < count_; ++i) {
    if (tensors_[i].name == name) return tensors_[i].tensor;
    known += (known.empty() ? "" : ", ") + std::string(tensors_[i].name);
  }
  throw ContractError("the batch has no tensor '" + std::string(name) + "'; there are " +
                      (known.empty() ? "none" : known));
}

Variable Batch::input(std::string_view name) const { return cast((*this)[name], activations_); }

}  // namespace ringlet::nn
