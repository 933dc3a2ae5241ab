#include "kernels/elementwise.h"
#include "kernels/softmax_shards.h"
#include "nn/ops/sharded_linear.h"
#include "nn/ops/softmax_cross_entropy.h"
#include "nn/tape.h"

namespace ringlet::nn {

namespace {

constexpr std::int64_t kNumbers = 3;  // of a sample, see softmax_shards.h

/// What forward leaves for backward; all of it trivially copyable.
struct ShardedLoss {
  Variable logits, loss;
  ShardBlocks blocks;
  Axis* axis;
  View targets;  // i32 [ranks * most]
  View merged;   // [ranks * most, kNumbers]
  View dloss;    // [1], of this rank
  View dlosses;  // [ranks]

  View targets_of(int rank) const {
    return targets.slice(rank * blocks.most, rank * blocks.most + axis->samples(rank));
  }
  /// Of numbers [ranks * most, kNumbers], those of a rank's samples.
  View numbers_of(const View& numbers, int rank) const {
    const std::int64_t begin = rank * blocks.most * kNumbers, samples = axis->samples(rank);
    return numbers.reshaped({numbers.count()})
        .slice(begin, begin + samples * kNumbers)
        .reshaped({samples, kNumbers});
  }
  template <class F>
  void for_each_block(F f) const {
    for (int rank = 0; rank < blocks.position.ranks; ++rank) {
      if (axis->samples(rank) == 0) continue;
      for (int index = 0; index < blocks.position.parts_of_rank(); ++index) f(rank, index);
    }
  }
};

void gather_targets(Tape& tape, const ShardedLoss& l, const Variable& targets) {
  const std::int64_t most = l.blocks.most, samples = targets.shape()[0];
  const View mine = tape.keep({most}, Layout::nchw, DType::i32);
  copy(tape.stream(), targets.value(), mine.slice(0, samples));
  l.axis->gather(tape.stream(), mine, l.targets, "targets");
}

/// Largest logit and sum of exponentials of every sample, over all outputs.
void merge(Tape& tape, const ShardedLoss& l) {
  const AxisPosition& position = l.blocks.position;
  const std::int64_t numbers = l.merged.count();
  const View mine = tape.keep({position.parts_of_rank() * numbers}, Layout::nchw);
  const View all = tape.keep({position.parts() * numbers}, Layout::nchw);
  l.for_each_block([&](int rank, int index) {
    const View of_part = mine.slice(index * numbers, (index + 1) * numbers);
    softmax_shard_forward(
        tape.stream(), l.blocks.block(l.logits.value(), rank, index, l.axis->samples(rank)),
        l.targets_of(rank), l.blocks.part(index).begin, l.numbers_of(of_part, rank));
  });
  l.axis->gather(tape.stream(), mine, all, "sums of exponentials");
  softmax_shards_merge(tape.stream(),
                       all.reshaped({position.parts(), l.merged.shape()[0], kNumbers}), l.merged);
}

void run_backward(Backward& backward, const ShardedLoss& l) {
  Stream& stream = backward.stream();
  // A rank's samples count as much as that rank's loss does.
  copy(stream, backward.gradient_to_read(l.loss), l.dloss);
  l.axis->gather(stream, l.dloss, l.dlosses, "gradients of losses");
  const auto [dlogits, beta] = backward.target(l.logits);
  if (beta == 0) fill(stream, 0, dlogits);  // between the blocks too
  l.for_each_block([&, of_logits = dlogits, b = beta](int rank, int index) {
    const std::int64_t samples = l.axis->samples(rank);
    softmax_shard_backward(stream, l.blocks.block(l.logits.value(), rank, index, samples),
                           l.targets_of(rank), l.blocks.part(index).begin,
                           l.numbers_of(l.merged, rank), l.dlosses.slice(rank, rank + 1), b,
                           l.blocks.block(of_logits, rank, index, samples));
  });
}

}  // namespace

Variable sharded_cross_entropy(const Variable& logits, const Variable& targets, std::int64_t rows,
                               const View& sum) {
  Tape& tape = logits.tape();
  Axis* axis = tape.context().axis;
  if (axis == nullptr) return smoothed_cross_entropy(logits, targets, 0, sum);
  const ShardBlocks blocks(*axis, rows);
  const std::int64_t ranks = blocks.position.ranks, samples = ranks * blocks.most;
  require(logits.shape() == (Shape{samples, blocks.held().size()}), "sharded_cross_entropy",
          "the logits are not those of sharded_linear() for so many rows");
  const ShardedLoss l{.logits = logits,
                      .loss = tape.make({1}, Layout::nchw),
                      .blocks = blocks,
                      .axis = axis,
                      .targets = tape.keep({samples}, Layout::nchw, DType::i32),
                      .merged = tape.keep({samples, kNumbers}, Layout::nchw),
                      .dloss = tape.keep({1}, Layout::nchw),
                      .dlosses = tape.keep({ranks}, Layout::nchw)};
  gather_targets(tape, l, targets);
  merge(tape, l);
  softmax_shards_loss(tape.stream(), l.numbers_of(l.merged, blocks.position.rank), l.loss.value(),
                      sum);
  tape.record("sharded_cross_entropy", {logits}, l.loss,
              [l](Backward& backward) { run_backward(backward, l); });
  return l.loss;
}

}  // namespace ringlet::nn
