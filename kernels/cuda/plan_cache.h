// PlanCache: plans that a library took some time to prepare, looked up by a plain key.
#pragma once

#include <forward_list>
#include <utility>

namespace ringlet {

/// A training step has a handful of keys, so a linear search is as fast as anything cleverer. A
/// look-up allocates nothing. References stay valid.
template <class Key, class Plan>
class PlanCache {
 public:
  /// The plan for `key`; the first time, what `make()` returns. What it throws is not remembered.
  template <class Make>
  Plan& find_or(const Key& key, Make make) {
    for (auto& [known, plan] : plans_) {
      if (known == key) return plan;
    }
    return plans_.emplace_front(key, make()).second;
  }

 private:
  std::forward_list<std::pair<Key, Plan>> plans_;
};

}  // namespace ringlet
