#include "tests/cuda_stand_in/graph_runs.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "tests/cuda_stand_in/faults.h"

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

/// Chains: a node goes on the lane of one that comes before it, where that is the last there.
std::vector<Order> lanes_of(const Nodes& nodes) {
  std::vector<Order> lanes;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto lane = std::find_if(lanes.begin(), lanes.end(), [&](const Order& other) {
      return nodes[i].after.contains(other.back());
    });
    if (lane == lanes.end()) {
      lanes.push_back({i});
    } else {
      lane->push_back(i);
    }
  }
  return lanes;
}

/// The lanes of one launch, while they run.
struct Lanes {
  enum State { open, done, stuck };
  std::vector<std::atomic<State>> states;  // of the nodes
  std::atomic<int> awake;                  // lanes that wait for no other
  std::atomic<int> meetings = 0;           // comings to meet_other_lane()

  /// Until it is so. What the thread sanitizer sees is the edge alone.
  template <class Condition>
  void sleep_until(Condition is_so) {
    awake.fetch_sub(1, std::memory_order_relaxed);
    while (!is_so()) std::this_thread::yield();
    awake.fetch_add(1, std::memory_order_relaxed);
  }
  bool all_are_done(const Indices& before) {
    return std::all_of(before.begin(), before.end(), [this](std::size_t index) {
      const auto is_open = [&] { return states[index].load(std::memory_order_acquire) == open; };
      if (is_open()) sleep_until([&] { return !is_open(); });
      return states[index].load(std::memory_order_acquire) == done;
    });
  }
  void run(const Nodes& nodes, const Order& lane) {
    bool goes_on = true;
    for (const std::size_t index : lane) {
      if (states[index].load(std::memory_order_relaxed) == done) continue;
      goes_on = goes_on && all_are_done(nodes[index].after) && nodes[index].work();
      states[index].store(goes_on ? done : stuck, std::memory_order_release);
    }
    awake.fetch_sub(1, std::memory_order_relaxed);
  }
  void meet() {
    const int mine = meetings.fetch_add(1, std::memory_order_relaxed);
    if (mine % 2 == 1) return;  // the other one is there
    sleep_until([&] {
      return meetings.load(std::memory_order_relaxed) > mine + 1 ||
             awake.load(std::memory_order_relaxed) == 0;
    });
    int alone = mine + 1;
    meetings.compare_exchange_strong(alone, mine, std::memory_order_relaxed);
  }
};
thread_local Lanes* lanes_here = nullptr;

/// With what a fault has lost (faults.h).
Nodes spoilt(Nodes nodes) {
  const bool forgets_joins = has_fault("branches"), comes_early = has_fault("early-launches");
  for (Node& node : nodes) {
    if (forgets_joins && node.after.size() > 1) node.after.erase(node.after.begin());
    const bool is_early = comes_early && node.kind == Kind::early_kernel;
    std::erase_if(node.after, [&](std::size_t before) {
      return is_early && nodes[before].kind != Kind::other;
    });
  }
  const auto last = std::find_if(nodes.rbegin(), nodes.rend(),
                                 [](const Node& node) { return node.kind != Kind::other; });
  if (has_fault("captures") && last != nodes.rend()) last->work = [] { return true; };
  return nodes;
}

}  // namespace

void meet_other_lane() {
  if (lanes_here != nullptr) lanes_here->meet();
}

bool all_come_before(const Nodes& nodes, const Indices& last) {
  Indices found = last;
  for (std::size_t index = nodes.size(); index-- > 0;) {
    if (!found.contains(index)) return false;
    found.insert(nodes[index].after.begin(), nodes[index].after.end());
  }
  return true;
}

GraphRuns::GraphRuns(const Nodes& nodes) : nodes_(spoilt(nodes)), lanes_(lanes_of(nodes_)) {
  orders_[0] = take_in_turn(edges_before(nodes_), std::greater<>());
  orders_[1] = take_in_turn(edges_behind(nodes_), std::less<>());
  std::reverse(orders_[1].begin(), orders_[1].end());
}

bool GraphRuns::may_run(std::size_t index) const {
  return !done_.contains(index) &&
         std::includes(done_.begin(), done_.end(), nodes_[index].after.begin(),
                       nodes_[index].after.end());
}

void GraphRuns::go_on_in_order(const Order& order) {
  for (bool moves = true; moves && done_.size() < nodes_.size();) {
    moves = false;
    for (const std::size_t index : order) {
      if (!may_run(index) || !nodes_[index].work()) continue;
      done_.insert(index);
      moves = true;
    }
  }
}

void GraphRuns::go_on_side_by_side() {
  Lanes lanes{std::vector<std::atomic<Lanes::State>>(nodes_.size()),
              static_cast<int>(lanes_.size())};
  for (const std::size_t index : done_) lanes.states[index] = Lanes::done;
  std::vector<std::thread> threads;
  for (const Order& lane : lanes_) {
    threads.emplace_back([this, &lanes, &lane] {
      lanes_here = &lanes;
      lanes.run(nodes_, lane);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t index = 0; index < nodes_.size(); ++index) {
    if (lanes.states[index] == Lanes::done) done_.insert(index);
  }
}

bool GraphRuns::go_on() {
  const std::size_t way = launches_ % 3;
  if (way == 2 && lanes_.size() > 1) {
    go_on_side_by_side();
  } else {
    go_on_in_order(orders_[way % 2]);
  }
  if (done_.size() < nodes_.size()) return false;
  done_.clear();
  ++launches_;
  return true;
}

}  // namespace ringlet::stand_in
