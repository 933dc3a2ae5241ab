#include "tests/cuda_stand_in/graph_runs.h"

#include <algorithm>
#include <functional>

namespace ringlet::stand_in {

namespace {

using Order = std::vector<std::size_t>;

std::vector<Indices> edges_before(const Nodes& nodes) {
  std::vector<Indices> before;
  for (const Node& node : nodes) before.push_back(node.after);
  return before;
}

std::vector<Indices> edges_behind(const Nodes& nodes) {
  std::vector<Indices> behind(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const std::size_t before : nodes[i].after) behind[before].insert(i);
  }
  return behind;
}

/// Takes one node after another, each behind all of its `needed`; of those that can be taken
/// better(index, other) says which.
template <class Better>
Order take_in_turn(const std::vector<Indices>& needed, Better better) {
  Order order;
  std::vector<bool> taken(needed.size());
  const auto can_be_taken = [&](std::size_t index) {
    return !taken[index] && std::all_of(needed[index].begin(), needed[index].end(),
                                        [&](std::size_t other) { return taken[other]; });
  };
  while (order.size() < needed.size()) {
    std::size_t best = needed.size();
    for (std::size_t index = 0; index < needed.size(); ++index) {
      if (can_be_taken(index) && (best == needed.size() || better(index, best))) best = index;
    }
    taken[best] = true;
    order.push_back(best);
  }
  return order;
}

}  // namespace

bool all_come_before(const Nodes& nodes, const Indices& last) {
  Indices found = last;
  for (std::size_t index = nodes.size(); index-- > 0;) {
    if (!found.contains(index)) return false;
    found.insert(nodes[index].after.begin(), nodes[index].after.end());
  }
  return true;
}

GraphRuns::GraphRuns(const Nodes& nodes) : nodes_(nodes) {
  orders_[0] = take_in_turn(edges_before(nodes), std::greater<>());
  orders_[1] = take_in_turn(edges_behind(nodes), std::less<>());
  std::reverse(orders_[1].begin(), orders_[1].end());
}

bool GraphRuns::may_run(std::size_t index) const {
  return !done_.contains(index) &&
         std::includes(done_.begin(), done_.end(), nodes_[index].after.begin(),
                       nodes_[index].after.end());
}

bool GraphRuns::go_on() {
  for (bool moves = true; moves && done_.size() < nodes_.size();) {
    moves = false;
    for (const std::size_t index : orders_[launches_ % 2]) {
      if (!may_run(index) || !nodes_[index].work()) continue;
      done_.insert(index);
      moves = true;
    }
  }
  if (done_.size() < nodes_.size()) return false;
  done_.clear();
  ++launches_;
  return true;
}

}  // namespace ringlet::stand_in
