#include "nn/ops/margin_softmax.h"

#include <algorithm>
#include <bit>

#include "kernels/elementwise.h"
#include "kernels/linear.h"
#include "kernels/row_sample.h"
#include "kernels/rows.h"
#include "kernels/softmax_shards.h"
#include "nn/axis.h"
#include "nn/ops/sharded_linear.h"
#include "nn/tape.h"

namespace ringlet::nn {

namespace {

constexpr std::int64_t kOfSample = 3;  // of a sample, see softmax_shards.h

/// Columns [begin, end) of the products with this rank's rows, of one part of them.
struct Block {
  int part;
  std::int64_t begin, end;
  bool first, last;  // of its part
  std::int64_t size() const { return end - begin; }
};

/// What a pass finds of all ranks' samples; or what all passes of a step have found, one after the
/// other. Products are absent there where a step keeps none.
struct Found {
  View features, x_inverse, own, targets, merged, dlosses, products;
};

/// What forward leaves for backward; all of it trivially copyable.
struct Head : Found {
  Variable x, centres, loss;
  MarginSpec spec;
  Axis* axis;  // null: this rank has all samples and all rows
  AxisPosition position;
  const Parameter* rows;  // the centres
  std::int64_t most;      // samples of a rank
  std::int64_t apart;     // rows from rank to rank in dfeatures
  std::int64_t columns;
  bool keeps;              // all products
  bool is_sampled;         // the step has some of the rows alone
  bool adds_shards;        // the rows' gradient is made in a step's last pass, see sum_shards()
  int pass;                // of a step
  Found of_step;           // where adds_shards: of all passes
  View weight, w_inverse;  // of the columns: this rank's rows, or those of them that are listed
  View cosines;            // of the samples with their own classes, in training
  View labels;             // `own`: the column of each, counted from `first`
  std::int64_t first;
  View dfeatures, partial;  // of features; of a part of the rows, where there are several
  View sums;                // where adds_shards: gradients of a block of rows
  View dloss;

  std::int64_t samples(int rank) const {
    return axis != nullptr ? axis->samples_in(pass, rank) : x.shape()[0];
  }
  std::int64_t width() const { return weight.shape()[0]; }

  View features_of(int rank) const { return numbers_of(features, rank, columns); }
  View dfeatures_of(int rank) const {
    return rows_of_matrix(dfeatures, rank * apart, samples(rank), columns);
  }
  /// Of numbers [ranks * most, `width`], those of a rank's samples.
  View numbers_of(const View& all, int rank, std::int64_t width) const {
    return rows_of_matrix(all, rank * most, samples(rank), width);
  }
  /// Of numbers [parts of all ranks, most, 3], a part's of a rank's samples.
  View numbers_of_part(const View& all, int part, int rank) const {
    return rows_of_matrix(all, part * most, samples(rank), kOfSample);
  }
  View of_samples(const View& all, int rank) const {
    return all.slice(rank * most, rank * most + samples(rank));
  }
  View cosines_of(int rank) const { return cosines.absent() ? View() : of_samples(cosines, rank); }
  View weight_of(const View& matrix, const Block& block) const {
    return rows_of_matrix(matrix, block.begin, block.size(), columns);
  }
  View inverse_of(const Block& block) const { return w_inverse.slice(block.begin, block.end); }
  /// Where shards' gradients of a block wait for others, besides the block of `dw` itself.
  View sum(int index, const Block& block, const View& dw) const {
    if (index == 0) return weight_of(dw, block);
    const std::int64_t most_rows = sums.shape()[0] / waiting_sums();
    return rows_of_matrix(sums, (index - 1) * most_rows, block.size(), columns);
  }
  /// At most.
  int waiting_sums() const { return std::bit_width(static_cast<unsigned>(position.shards - 1)); }
  /// This head in another pass of the step, as far as it is in memory still.
  Head in_pass(int index) const {
    Head there = *this;
    const std::int64_t of_pass = position.ranks * most, at = index * of_pass;
    there.pass = index;
    there.features = rows_of_matrix(of_step.features, at, of_pass, columns);
    there.x_inverse = of_step.x_inverse.slice(at, at + of_pass);
    there.own = of_step.own.slice(at, at + of_pass);
    there.targets = rows_of_matrix(of_step.targets, at, of_pass, 2);
    there.merged = rows_of_matrix(of_step.merged, at, of_pass, kOfSample);
    there.dlosses =
        of_step.dlosses.slice(index * position.ranks, (index + 1) * std::int64_t{position.ranks});
    if (of_step.products.absent()) return there;
    there.products = of_step.products.slice(at * width(), (at + of_pass) * width());
    return there;
  }
  View product(int rank, const Block& block) const {
    const std::int64_t at = keeps ? most * (rank * width() + block.begin) : 0;
    return products.slice(at, at + samples(rank) * block.size())
        .reshaped({samples(rank), block.size()});
  }

  /// Which columns are of a part of this rank's.
  Rows part_of_columns(int index) const {
    if (is_sampled) return rows->gradient_rows(position, index);
    return gradient_rows_of({}, rows->shape[0], position, index);
  }

  template <class F>
  void for_each_rank(F f) const {
    for (int rank = 0; rank < position.ranks; ++rank) {
      if (samples(rank) > 0) f(rank);
    }
  }
  /// Also of a part without columns: one block, that is first and last and empty.
  template <class F>
  void for_each_block(F f) const {
    for (int index = 0; index < position.parts_of_rank(); ++index) {
      const Rows part = part_of_columns(index);
      std::int64_t at = part.begin;
      do {
        const std::int64_t stop = std::min(part.end, at + kClassesOfBlock);
        f(Block{index, at, stop, at == part.begin, stop == part.end});
        at = stop;
      } while (at < part.end);
    }
  }

  void multiply(Stream& stream, int rank, const Block& block) const {
    if (block.size() == 0) return;
    linear_forward(stream, features_of(rank), weight_of(weight, block), {}, Activation::none,
                   product(rank, block));
  }
};

void gather(Stream& stream, const Head& head, const View& mine, const View& all, const char* name) {
  if (head.axis == nullptr) return;
  head.axis->gather(stream, mine, all, name);
}

/// Embeddings and labels of all ranks' samples.
void gather_samples(Tape& tape, const Head& head, const Variable& labels) {
  Stream& stream = tape.stream();
  const std::int64_t samples = head.x.shape()[0];
  require(samples <= head.most, "margin_softmax",
          "the batch is larger than the axis says that any is");
  const bool alone = head.axis == nullptr;
  const View mine = alone ? head.features : tape.keep({head.most, head.columns}, Layout::nchw);
  const View own = alone ? head.labels : tape.keep({head.most}, Layout::nchw, DType::i32);
  rows_forward(stream, head.x.value(), rows_of_matrix(mine, 0, samples, head.columns));
  copy(stream, labels.value(), own.slice(0, samples));
  gather(stream, head, mine, head.features, "embeddings");
  gather(stream, head, own, head.labels, "labels");
}

/// The rows that the step has, and where the samples' own are among them.
void take_sample(Stream& stream, const Head& head) {
  const View& listed = head.rows->listed;
  gather_rows(stream, head.centres.value(), listed, head.weight, head.w_inverse);
  for (int index = 0; index < head.position.parts_of_rank(); ++index) {
    const Rows part = head.part_of_columns(index);
    find_rows(stream, listed.slice(part.begin, part.end), head.labels, head.rows->rows.begin,
              part.begin, index > 0, head.own);
  }
}

/// Largest logit and sum of exponentials of every sample, over all classes. Returns those of the
/// parts, of this rank's samples: a rank merges its own, and tells the others.
View merge(Tape& tape, const Head& head, const MarginSpec& spec) {
  Stream& stream = tape.stream();
  const int parts_of_rank = head.position.parts_of_rank();
  const Shape of_parts{head.position.parts(), head.most, kOfSample};
  const View sent = tape.keep(of_parts, Layout::nchw);
  const View parts = head.axis == nullptr ? sent : tape.keep(of_parts, Layout::nchw);
  const View own =
      head.axis == nullptr ? head.merged : tape.keep({head.most, kOfSample}, Layout::nchw);
  head.for_each_rank([&](int rank) {
    margin_targets(stream, spec, head.features_of(rank), head.weight,
                   head.of_samples(head.own, rank), head.first, tape.context().epochs,
                   head.numbers_of(head.targets, rank, 2), head.cosines_of(rank));
    head.for_each_block([&](const Block& block) {
      head.multiply(stream, rank, block);
      const int part = rank * parts_of_rank + block.part;
      margin_softmax_part(stream, spec, head.product(rank, block),
                          head.of_samples(head.x_inverse, rank), head.inverse_of(block),
                          head.of_samples(head.own, rank), head.first + block.begin,
                          head.numbers_of(head.targets, rank, 2), !block.first,
                          head.numbers_of_part(sent, part, rank));
    });
  });
  if (head.axis != nullptr) head.axis->exchange(stream, sent, parts, "sums of exponentials");
  softmax_shards_merge(stream, parts, own);
  gather(stream, head, own, head.merged, "merged sums of exponentials");
  return parts;
}

/// Products become gradients.
void differentiate(Stream& stream, const Head& head, int rank, const Block& block) {
  margin_softmax_gradient(stream, head.spec, head.of_samples(head.x_inverse, rank),
                          head.inverse_of(block), head.of_samples(head.own, rank),
                          head.first + block.begin, head.numbers_of(head.targets, rank, 2),
                          head.numbers_of(head.merged, rank, kOfSample),
                          head.dlosses.slice(rank, rank + 1), head.product(rank, block));
}

/// Products become gradients, block by block, and these those of embeddings and, where `dw` is not
/// absent, of rows.
void run_blocks(Backward& backward, const Head& head, int rank, const View& dw, float beta_of_dw) {
  Stream& stream = backward.stream();
  const bool of_x = backward.wants(head.x), of_w = !dw.absent();
  const int parts = head.position.parts_of_rank();
  head.for_each_block([&](const Block& block) {
    if (!head.keeps) head.multiply(stream, rank, block);
    differentiate(stream, head, rank, block);
    const View g = head.product(rank, block);
    const View dx = parts == 1 ? head.dfeatures_of(rank)
                               : rows_of_matrix(head.partial, block.part * head.most,
                                                head.samples(rank), head.columns);
    if (block.size() == 0) {
      if (of_x && block.first) fill(stream, 0, dx);
      return;
    }
    if (of_x) {
      linear_backward_data(stream, head.weight_of(head.weight, block), g, block.first ? 0.0F : 1.0F,
                           dx);
    }
    if (of_w) {
      linear_backward_weight(stream, head.features_of(rank), g, beta_of_dw,
                             head.weight_of(dw, block));
    }
  });
  if (!of_x || parts == 1) return;
  // Parts in a tree. Across ranks Axis::sum_own() goes on in it.
  const auto partial = [&](int index) {
    return rows_of_matrix(head.partial, index * head.most, head.samples(rank), head.columns);
  };
  for (int step = 1; step < parts; step *= 2) {
    for (int index = 0; index < parts; index += 2 * step) {
      accumulate(stream, partial(index + step), partial(index));
    }
  }
  copy(stream, partial(0), head.dfeatures_of(rank));
}

/// to = the gradient of a block of rows, of a logical shard's samples.
void differentiate_shard(Stream& stream, const Head& head, int shard, const Block& block,
                         const View& to) {
  const int shards_of_rank = head.position.parts_of_rank(), rank = shard / shards_of_rank;
  const int first = shard % shards_of_rank * head.position.accumulate;
  for (int i = 0; i < head.position.accumulate; ++i) {
    const Head pass = head.in_pass(first + i);
    if (pass.samples(rank) == 0) {
      if (i == 0) fill(stream, 0, to);
      continue;
    }
    if (head.of_step.products.absent()) {
      pass.multiply(stream, rank, block);
      differentiate(stream, pass, rank, block);
    }
    linear_backward_weight(stream, pass.features_of(rank), pass.product(rank, block),
                           i == 0 ? 0.0F : 1.0F, to);
    project_rows(stream, head.weight_of(head.weight, block), head.inverse_of(block), to);
  }
}

/// dw = the gradient of this rank's rows, of all passes of a step: that of each logical shard by
/// itself, and these added in the tree that train/sync/shard_tree.h draws. All of it is of this
/// rank's rows, so a block of them is done after another, and beside dw there are a few blocks.
void sum_shards(Stream& stream, const Head& head, const View& dw) {
  head.for_each_block([&](const Block& block) {
    if (block.size() == 0) return;
    for (int shard = 0; shard < head.position.shards; ++shard) {
      const auto bits = static_cast<unsigned>(shard);
      int top = std::popcount(bits);
      differentiate_shard(stream, head, shard, block, head.sum(top, block, dw));
      for (int meeting = std::countr_one(bits); meeting > 0; --meeting, --top) {
        accumulate(stream, head.sum(top, block, dw), head.sum(top - 1, block, dw));
      }
    }
  });
}

/// Where the gradient of this rank's rows goes in this pass; none where nobody wants it, or where
/// it waits for the step's last one.
Backward::RowTargets targets_of_rows(Backward& backward, const Head& head, View& alone) {
  if (!backward.wants(head.centres) || head.adds_shards) return {};
  if (head.axis != nullptr) return backward.row_targets(head.centres);
  const auto [view, beta] = backward.target(head.centres);
  alone = view;
  return {{&alone, 1}, beta};
}

void run_backward(Backward& backward, const Head& head) {
  Stream& stream = backward.stream();
  const bool of_x = backward.wants(head.x);
  // A rank's samples count as much as that rank's loss does.
  copy(stream, backward.gradient_to_read(head.loss), head.dloss);
  gather(stream, head, head.dloss, head.dlosses, "gradients of losses");
  View alone;
  const Backward::RowTargets rows = targets_of_rows(backward, head, alone);
  if (of_x) fill(stream, 0, head.dfeatures);
  for (int rank = 0; rank < head.position.ranks; ++rank) {
    const View dw = rows.views.empty() ? View() : rows.view(rank);
    const float beta = rows.views.empty() ? 0 : rows.beta_of(rank);
    if (head.samples(rank) > 0) {
      run_blocks(backward, head, rank, dw, beta);
    } else if (!dw.absent() && beta == 0) {
      fill(stream, 0, dw);
    }
  }
  // What was added before is orthogonal to its row already, and stays so but for rounding: so a
  // rank without samples, which might as well not have been asked, leaves it alone.
  for (int rank = 0; rank < std::ssize(rows.views); ++rank) {
    if (rows.views.size() > 1 && head.samples(rank) == 0) continue;
    project_rows(stream, head.weight, head.w_inverse, rows.view(rank));
  }
  if (head.adds_shards && backward.wants(head.centres)) {
    const bool is_last = head.axis->is_last();
    const View dw = backward.step_target(head.centres, is_last);
    if (is_last) sum_shards(stream, head, dw);
  }
  if (!of_x) return;
  if (head.axis != nullptr) head.axis->sum_own(stream, head.dfeatures, "gradients of embeddings");
  const std::int64_t first = head.position.rank * head.most, samples = head.x.shape()[0];
  const View own =
      rows_of_matrix(head.dfeatures, head.position.rank * head.apart, samples, head.columns);
  if (head.samples(head.position.rank) > 0) {  // else a stand-in, whose gradient is 0
    project_rows(stream, rows_of_matrix(head.features, first, samples, head.columns),
                 head.x_inverse.slice(first, first + samples), own);
  }
  const auto [dx, beta] = backward.target(head.x);
  rows_backward(stream, own, beta, dx);
}

/// Room for what all passes of a step find, and for the sums of a block.
void keep_for_step(Tape& tape, Head& head, std::int64_t kept) {
  const std::int64_t samples =
      std::int64_t{head.position.passes()} * head.position.ranks * head.most;
  head.of_step = {
      .features = tape.keep_for_step({samples, head.columns}),
      .x_inverse = tape.keep_for_step({samples}),
      .own = tape.keep_for_step({samples}, DType::i32),
      .targets = tape.keep_for_step({samples, 2}),
      .merged = tape.keep_for_step({samples, kOfSample}),
      .dlosses = tape.keep_for_step({std::int64_t{head.position.passes()} * head.position.ranks}),
      .products = keeps_products(samples, head.width(), kept)
                      ? tape.keep_for_step({samples * head.width()})
                      : View()};
  std::int64_t most_rows = 0;
  head.for_each_block([&](const Block& block) { most_rows = std::max(most_rows, block.size()); });
  head.sums = tape.keep({head.waiting_sums() * most_rows, head.columns}, Layout::nchw);
  head = head.in_pass(head.pass);
}

/// Room for what a pass finds.
void keep_for_pass(Tape& tape, Head& head) {
  const auto keep = [&](const Shape& kept) { return tape.keep(kept, Layout::nchw); };
  const std::int64_t samples = head.position.ranks * head.most;
  head.features = keep({samples, head.columns});
  head.x_inverse = keep({samples});
  head.own = head.is_sampled ? tape.keep({samples}, Layout::nchw, DType::i32) : head.labels;
  head.targets = keep({samples, 2});
  head.merged = keep({samples, kOfSample});
  if (!tape.context().training) return;
  head.dlosses = head.axis != nullptr ? keep({head.position.ranks}) : head.dloss;
}

Head make_head(const Variable& x, Parameter& centres, const MarginSpec& spec, std::int64_t kept) {
  Tape& tape = x.tape();
  const Shape& shape = centres.shape;
  require(x.shape().rank() == 2 && shape.rank() == 2 && x.shape()[1] == shape[1], "margin_softmax",
          "the embedding has not as many numbers as the centres have");
  Axis* axis = tape.context().axis;
  Head head{};
  head.x = x;
  head.spec = spec;
  head.axis = axis;
  head.centres = tape.parameter(centres);
  head.position = axis != nullptr ? axis->position() : AxisPosition{};
  head.pass = axis != nullptr ? axis->pass() : 0;
  head.rows = &centres;
  head.most = axis != nullptr ? axis->most() : x.shape()[0];
  head.columns = shape[1];
  head.apart = Axis::rows_of_part(head.most, head.columns);
  const bool learns = tape.context().training;
  const int parts = head.position.parts_of_rank();
  const auto keep = [&](const Shape& kept) { return tape.keep(kept, Layout::nchw); };
  head.is_sampled = learns && centres.sampling;
  head.weight = head.is_sampled ? keep(centres.with_gradient()) : head.centres.value();
  head.first = head.is_sampled ? 0 : head.position.held(shape[0], head.position.rank).begin;
  const std::int64_t samples = head.position.ranks * head.most, rows = head.width();
  head.keeps = learns && keeps_products(samples, rows, kept);
  head.adds_shards = learns && centres.is_written_once;
  head.loss = tape.make({1}, Layout::nchw);
  head.w_inverse = keep({rows});
  head.dloss = learns ? keep({1}) : View();
  if (head.adds_shards) {
    keep_for_step(tape, head, kept);
    head.labels = head.is_sampled ? tape.keep({samples}, Layout::nchw, DType::i32) : head.own;
  } else {
    head.labels = tape.keep({samples}, Layout::nchw, DType::i32);
    keep_for_pass(tape, head);
  }
  if (head.of_step.products.absent()) {
    head.products =
        keep({head.keeps ? samples * rows : head.most * std::min(rows, kClassesOfBlock)});
  }
  if (!learns) return head;
  head.cosines = keep({samples});
  head.dfeatures = keep({head.position.ranks * head.apart, head.columns});
  head.partial = parts > 1 ? keep({parts * head.most, head.columns}) : View();
  return head;
}

}  // namespace

Variable margin_softmax(const Variable& x, Parameter& centres, const Variable& labels,
                        const MarginSpec& spec, const MarginSums& sums, std::int64_t kept) {
  Tape& tape = x.tape();
  Stream& stream = tape.stream();
  const Head head = make_head(x, centres, spec, kept);
  gather_samples(tape, head, labels);
  head.for_each_rank([&](int rank) {
    inverse_norms(stream, head.features_of(rank), head.of_samples(head.x_inverse, rank));
  });
  if (head.is_sampled) {
    take_sample(stream, head);
  } else {
    inverse_norms(stream, head.weight, head.w_inverse);
  }
  if (!head.cosines.absent()) fill(stream, kNoCosine, head.cosines);
  const View parts = merge(tape, head, tape.context().training ? spec : spec.plain());
  softmax_shards_loss(stream, head.numbers_of(head.merged, head.position.rank, kOfSample),
                      head.loss.value(), sums.loss);
  if (!sums.right.absent()) {
    const std::int64_t begin = head.position.rank * head.most;
    softmax_shards_right(stream, parts, rows_of_matrix(head.merged, begin, head.most, kOfSample),
                         head.x_inverse.slice(begin, begin + head.most), 0,
                         head.samples(head.position.rank), sums.right);
  }
  if (!sums.angles.absent() && !head.cosines.absent()) {
    margin_angles(stream, spec, head.cosines, parts, 0, head.samples(head.position.rank),
                  sums.angles);
  }
  tape.record("margin_softmax", {x, head.centres}, head.loss,
              [head](Backward& backward) { run_backward(backward, head); });
  return head.loss;
}

}  // namespace ringlet::nn
