// The nodes of a captured graph, and the orders in which the stand-in runs them.
//
// CUDA runs a graph's nodes in any order that its edges permit, and side by side. Three ways take
// turns here, launch by launch. Two are orders as far from that of the calls as the edges let them
// be: in the first a node runs as soon as it may, the one called last before the others; in the
// second as late as it may, the one called first behind the others. So where an edge is missing
// between a stream and one that was forked from it, whichever of the two should wait, a launch
// gives wrong results. In the third, lanes of nodes run in threads side by side, and wait for each
// other by the edges alone: what no edge orders, the thread sanitizer tells of.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "tests/cuda_stand_in/stand_in.h"

namespace ringlet::stand_in {

using Indices = std::set<std::size_t>;

struct Node {
  std::string name;
  Work work;
  Indices after;  ///< indices of the nodes that come before; lower than its own
  Kind kind = Kind::other;
};

/// In the order of the calls.
using Nodes = std::vector<Node>;

/// Whether each node is one of `last`, or comes before one of them.
bool all_come_before(const Nodes& nodes, const Indices& last);

/// A graph's launches, one after another.
class GraphRuns {
 public:
  explicit GraphRuns(const Nodes& nodes);
  /// Begins a launch, or goes on with it; false: it waits for something.
  bool go_on();

 private:
  bool may_run(std::size_t index) const;
  void go_on_in_order(const std::vector<std::size_t>& order);
  void go_on_side_by_side();

  Nodes nodes_;
  std::vector<std::vector<std::size_t>> lanes_;  // each comes behind the one before it by an edge
  std::vector<std::size_t> orders_[2];
  std::size_t launches_ = 0;  // that are over
  Indices done_;              // of the one under way
};

}  // namespace ringlet::stand_in
