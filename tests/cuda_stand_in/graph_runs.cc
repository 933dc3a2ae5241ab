#include "tests/cuda_stand_in/graph_runs.h"

#include <algorithm>
#include <functional>

namespace ringlet::stand_in {

namespace {

using Order = std::vector<std::size_t>;

std::vector<Places> edges_before(const Nodes& nodes) {
  std::vector<Places> before;
  for (const Node& node : nodes) before.push_back(node.after);
  return before;
}

std::vector<Places> edges_behind(const Nodes& nodes) {
  std::vector<Places> behind(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const std::size_t before : nodes[i].after) behind[before].insert(i);
  }
  return behind;
}

/// Takes one node after another, each behind all of its `needed`; of those that can be taken
/// better(place, other) says which.
template <class Better>
Order take_in_turn(const std::vector<Places>& needed, Better better) {
  Order order;
  std::vector<bool> taken(needed.size());
  const auto can_be_taken = [&](std::size_t place) {
    return !taken[place] && std::all_of(needed[place].begin(), needed[place].end(),
                                        [&](std::size_t other) { return taken[other]; });
  };
  while (order.size() < needed.size()) {
    std::size_t best = needed.size();
    for (std::size_t place = 0; place < needed.size(); ++place) {
      if (can_be_taken(place) && (best == needed.size() || better(place, best))) best = place;
    }
    taken[best] = true;
    order.push_back(best);
  }
  return order;
}

}  // namespace

bool all_come_before(const Nodes& nodes, const Places& last) {
  Places found = last;
  for (std::size_t place = nodes.size(); place-- > 0;) {
    if (!found.contains(place)) return false;
    found.insert(nodes[place].after.begin(), nodes[place].after.end());
  }
  return true;
}

GraphRuns::GraphRuns(const Nodes& nodes) : nodes_(nodes) {
  orders_[0] = take_in_turn(edges_before(nodes), std::greater<>());
  orders_[1] = take_in_turn(edges_behind(nodes), std::less<>());
  std::reverse(orders_[1].begin(), orders_[1].end());
}

bool GraphRuns::may_run(std::size_t place) const {
  return !done_.contains(place) &&
         std::includes(done_.begin(), done_.end(), nodes_[place].after.begin(),
                       nodes_[place].after.end());
}

bool GraphRuns::go_on() {
  for (bool moves = true; moves && done_.size() < nodes_.size();) {
    moves = false;
    for (const std::size_t place : orders_[launches_ % 2]) {
      if (!may_run(place) || !nodes_[place].work()) continue;
      done_.insert(place);
      moves = true;
    }
  }
  if (done_.size() < nodes_.size()) return false;
  done_.clear();
  ++launches_;
  return true;
}

}  // namespace ringlet::stand_in
