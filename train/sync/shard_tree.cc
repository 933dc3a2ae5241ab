#include "train/sync/shard_tree.h"

#include <bit>

#include "kernels/elementwise.h"

namespace ringlet::train {

namespace {

unsigned bits(int shard) { return static_cast<unsigned>(shard); }

}  // namespace

int ShardTree::arenas() const { return arena_of(shards_ - 1) + 1; }

int ShardTree::arena_of(int shard) { return std::popcount(bits(shard)); }

void ShardTree::merge(Stream& stream, const nn::Parameters& parameters, int shard) const {
  int top = arena_of(shard);
  for (int meeting = std::countr_one(bits(shard)); meeting > 0; --meeting, --top) {
    accumulate(stream, parameters.gradients(top), parameters.gradients(top - 1));
  }
}

void ShardTree::merge_last(Stream& stream, const nn::Parameters& parameters, std::int64_t begin,
                           std::int64_t end) const {
  for (int top = arena_of(shards_ - 1); top > 0; --top) {
    accumulate(stream, parameters.gradients(top).slice(begin, end),
               parameters.gradients(top - 1).slice(begin, end));
  }
}

}  // namespace ringlet::train
