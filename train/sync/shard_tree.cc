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
  const nn::Plan& plan = parameters.plan();
  int top = arena_of(shard);
  for (int meeting = std::countr_one(bits(shard)); meeting > 0; --meeting, --top) {
    if (!plan.is_sharded() && plan.frozen == 0) {
      accumulate(stream, parameters.gradients(top), parameters.gradients(top - 1));
      continue;
    }
    const auto add = [&](std::int64_t begin, std::int64_t end) {
      accumulate(stream, parameters.gradients(top, begin, end),
                 parameters.gradients(top - 1, begin, end));
    };
    add(plan.frozen, plan.replicated_gradient());
    add(plan.with_gradient(), parameters.gradients().count());
  }
}

void ShardTree::add_rows(Stream& stream, const nn::Parameters& parameters, int shards) {
  if (parameters.plan().rows_apart == 0) return;
  for (int step = 1; step < shards; step *= 2) {
    for (int shard = 0; shard < shards; shard += 2 * step) {
      accumulate(stream, parameters.row_gradients(shard + step), parameters.row_gradients(shard));
    }
  }
}

void ShardTree::merge_last(Stream& stream, const nn::Parameters& parameters, std::int64_t begin,
                           std::int64_t end) const {
  for (int top = arena_of(shards_ - 1); top > 0; --top) {
    accumulate(stream, parameters.gradients(top, begin, end),
               parameters.gradients(top - 1, begin, end));
  }
}

}  // namespace ringlet::train
