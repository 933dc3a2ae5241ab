#include "nn/ops/sharded_linear.h"

#include "kernels/elementwise.h"
#include "kernels/linear.h"
#include "kernels/rows.h"
#include "nn/cast.h"
#include "nn/ops/linear.h"
#include "nn/tape.h"

namespace ringlet::nn {

namespace {

/// What forward leaves for backward; all of it trivially copyable.
struct Product {
  Variable x, weight, y;
  ShardBlocks blocks;
  Axis* axis;
  std::int64_t columns;
  View features;   // of all ranks' samples, [ranks * most, columns]
  View dfeatures;  // the same
  View partial;    // [parts of this rank, most, columns]

  View features_of(const View& all, int rank) const {
    return rows_of_matrix(all, rank * blocks.most, axis->samples(rank), columns);
  }
  /// Of a matrix of this rank's rows, those of its part `index`.
  View rows_of_part(const View& held, int index) const {
    const Rows part = blocks.part(index);
    return rows_of_matrix(held, part.begin - blocks.held().begin, part.size(), columns);
  }
  /// Whether a rank has fewer samples than another might.
  bool has_gaps() const {
    for (int rank = 0; rank < blocks.position.ranks; ++rank) {
      if (axis->samples(rank) < blocks.most) return true;
    }
    return false;
  }
  View block(const View& logits, int rank, int index) const {
    return blocks.block(logits, rank, index, axis->samples(rank));
  }
  /// Calls f(rank, part) for all that have samples and rows.
  template <class F>
  void for_each_block(F f) const {
    for (int rank = 0; rank < blocks.position.ranks; ++rank) {
      if (axis->samples(rank) == 0) continue;
      for (int index = 0; index < blocks.position.parts_of_rank(); ++index) {
        if (blocks.part(index).size() > 0) f(rank, index);
      }
    }
  }
};

void gather_features(Stream& stream, const Product& p, const View& mine) {
  const std::int64_t samples = p.x.shape()[0];
  require(samples <= p.blocks.most, "sharded_linear",
          "the batch is larger than the axis says that any is");
  rows_forward(stream, p.x.value(), rows_of_matrix(mine, 0, samples, p.columns));
  p.axis->gather(stream, mine, p.features, "features for sharded rows");
}

void row_gradient(Backward& backward, const Product& p, const View& dy) {
  Stream& stream = backward.stream();
  const Backward::RowTargets targets = backward.row_targets(p.weight);
  for (int rank = 0; rank < p.blocks.position.ranks; ++rank) {
    const View dw = targets.view(rank);
    const float beta = targets.beta_of(rank);
    if (p.axis->samples(rank) == 0) {
      if (beta == 0) fill(stream, 0, dw);
      continue;
    }
    for (int index = 0; index < p.blocks.position.parts_of_rank(); ++index) {
      if (p.blocks.part(index).size() == 0) continue;
      linear_backward_weight(stream, p.features_of(p.features, rank), p.block(dy, rank, index),
                             beta, p.rows_of_part(dw, index));
    }
  }
}

/// The part of a rank's features' gradient that comes from this rank's rows: of each part by
/// itself, added in the tree over the parts. Across ranks Axis::sum() goes on in it.
void add_parts(Stream& stream, const Product& p, const View& dy, int rank) {
  const View sum = p.features_of(p.dfeatures, rank);
  const int parts = p.blocks.position.parts_of_rank();
  const auto partial = [&](int index) {
    return rows_of_matrix(p.partial, index * p.blocks.most, p.axis->samples(rank), p.columns);
  };
  for (int index = 0; index < parts; ++index) {
    const View dx = parts == 1 ? sum : partial(index);
    if (p.blocks.part(index).size() == 0) {
      fill(stream, 0, dx);
      continue;
    }
    linear_backward_data(stream, p.rows_of_part(p.weight.value(), index), p.block(dy, rank, index),
                         0, dx);
  }
  if (parts == 1) return;
  for (int step = 1; step < parts; step *= 2) {
    for (int index = 0; index < parts; index += 2 * step) {
      accumulate(stream, partial(index + step), partial(index));
    }
  }
  copy(stream, partial(0), sum);
}

void feature_gradient(Backward& backward, const Product& p, const View& dy) {
  Stream& stream = backward.stream();
  fill(stream, 0, p.dfeatures);
  for (int rank = 0; rank < p.blocks.position.ranks; ++rank) {
    if (p.axis->samples(rank) > 0) add_parts(stream, p, dy, rank);
  }
  p.axis->sum(stream, p.dfeatures, "gradients of features");
  const auto [dx, beta] = backward.target(p.x);
  rows_backward(stream,
                rows_of_matrix(p.dfeatures, p.blocks.position.rank * p.blocks.most, p.x.shape()[0],
                               p.columns),
                beta, dx);
}

}  // namespace

View ShardBlocks::block(const View& logits, int rank, int index, std::int64_t samples) const {
  const Rows mine = held(), of_part = part(index);
  const std::int64_t begin = most * (rank * mine.size() + of_part.begin - mine.begin);
  return logits.reshaped({logits.count()})
      .slice(begin, begin + samples * of_part.size())
      .reshaped({samples, of_part.size()});
}

Variable sharded_linear(const Variable& x, Parameter& weight) {
  Tape& tape = x.tape();
  const Variable w = tape.parameter(weight);
  Axis* axis = tape.context().axis;
  if (axis == nullptr) return linear(cast(x, DType::f32), w, {});
  const std::int64_t columns = weight.shape[1];
  require(x.shape().rank() == 2 && x.shape()[1] == columns, "sharded_linear",
          "the input has not as many features as the matrix has columns");
  const ShardBlocks blocks(*axis, weight.shape[0]);
  const std::int64_t samples = blocks.position.ranks * blocks.most;
  const View mine = tape.keep({blocks.most, columns}, Layout::nchw);
  const bool learns = tape.context().training;
  const int parts = blocks.position.parts_of_rank();
  const Product p{.x = x,
                  .weight = w,
                  .y = tape.make({samples, blocks.held().size()}, Layout::nchw),
                  .blocks = blocks,
                  .axis = axis,
                  .columns = columns,
                  .features = tape.keep({samples, columns}, Layout::nchw),
                  .dfeatures = learns ? tape.keep({samples, columns}, Layout::nchw) : View(),
                  .partial = learns && parts > 1
                                 ? tape.keep({parts * blocks.most, columns}, Layout::nchw)
                                 : View()};
  gather_features(tape.stream(), p, mine);
  if (p.has_gaps()) fill(tape.stream(), 0, p.y.value());  // who looks for broken numbers sees all
  p.for_each_block([&](int rank, int index) {
    linear_forward(tape.stream(), p.features_of(p.features, rank), p.rows_of_part(w.value(), index),
                   {}, Activation::none, p.block(p.y.value(), rank, index));
  });
  tape.record("sharded_linear", {x, w}, p.y, [p](Backward& backward) {
    const View dy = backward.gradient(p.y);
    if (backward.wants(p.weight)) row_gradient(backward, p, dy);
    if (backward.wants(p.x)) feature_gradient(backward, p, dy);
  });
  return p.y;
}

}  // namespace ringlet::nn
