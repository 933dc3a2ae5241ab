// ShardTree: adds the gradients of a rank's logical shards in one fixed binary tree.
//
//   shard    0   1   2   3
//             \ /     \ /        a rank owns m = 2^k shards; across ranks, recursive doubling adds
//              +       +         in the same tree. So the tree over all S shards does not depend on
//               \     /          the number of ranks, and neither do the bits of the sum.
//                  +
//
// Shard i is computed into gradient arena popcount(i); when it is done, each 1 at the low end of i
// says that two finished subtrees meet: arena d is added to arena d - 1. So log2(m) + 1 arenas are
// enough, and the sum of all ends in arena 0. nn/ops/margin_softmax.cc adds blocks of rows so.
#pragma once

#include "kernels/stream.h"
#include "nn/parameters.h"

namespace ringlet::train {

class ShardTree {
 public:
  /// `shards`: that this rank owns. Outside exact mode it is 1, and nothing is ever added.
  explicit ShardTree(int shards) : shards_(shards) {}

  int arenas() const;
  /// Where shard `i` is computed.
  static int arena_of(int shard);
  /// Adds what can be added once shard `i`, not the last one, is done.
  void merge(Stream& stream, const nn::Parameters& parameters, int shard) const;
  /// The same for rows that are cut over ranks, where their gradients of all `shards` of the world
  /// are kept apart, when these are done: the sum is in arena 0. Each rank has the samples of all
  /// shards for its rows.
  static void add_rows(Stream& stream, const nn::Parameters& parameters, int shards);
  /// Once elements [begin, end) of the last shard are done: all of these elements' sum is in
  /// arena 0 afterwards. Ranges of the last shard may become final one by one.
  void merge_last(Stream& stream, const nn::Parameters& parameters, std::int64_t begin,
                  std::int64_t end) const;

 private:
  int shards_;
};

}  // namespace ringlet::train
