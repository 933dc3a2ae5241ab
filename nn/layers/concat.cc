#include "nn/layers/concat.h"

#include <algorithm>
#include <array>
#include <span>

#include "nn/ops/concat.h"

namespace ringlet::nn {

Sequential& Concat::add(const std::string& name) {
  branches_.emplace_back(name, std::make_unique<Sequential>());
  return *branches_.back().second;
}

Variable Concat::forward(Tape& tape, const Variable& x) {
  require(branches_.size() <= kMostParts, "Concat", "has more than eight branches");
  std::array<Variable, kMostParts> parts;  // no vector: a step allocates nothing
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    const Tape::Scope scope(tape, branches_[i].first);
    parts[i] = branches_[i].second->forward(tape, x);
  }
  return concat(std::span(parts).first(branches_.size()));
}

bool Concat::takes(Layout layout) const {
  return std::ranges::all_of(branches_,
                             [layout](const auto& branch) { return branch.second->takes(layout); });
}

void Concat::register_in(Registry& registry, const std::string& prefix) {
  for (const auto& [name, branch] : branches_) branch->register_in(registry, prefix + name + ".");
}

}  // namespace ringlet::nn
