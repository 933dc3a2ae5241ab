// The CPU's implementation of kernels/margin_softmax.h, by the loops of an instruction set.
#include "kernels/margin_softmax.h"

#include <algorithm>
#include <limits>

#include "kernels/cpu/cpu_grid.h"
#include "kernels/cpu/margin/table.h"
#include "kernels/grid/margin_softmax.h"
#include "kernels/row_sample.h"

namespace ringlet::impl {

namespace {

MarginLoops margin_loops_for(const CpuStream& stream) {
  return for_instruction_set(stream.isa(), [](auto set) { return margin_loops_of(set); });
}

MarginRow row_of(const grid::MarginLogits& of, std::int64_t n) {
  return {of.others,
          of.classes,
          of.x_inverse[n],
          of.w_inverse,
          of.labels[n] - of.first,
          {of.targets[2 * n], of.targets[2 * n + 1]}};
}

}  // namespace

void inverse_norms(CpuStream& stream, const ConstView& x, const View& inverse) {
  const auto dot = margin_loops_for(stream).dot;
  for_each_item(stream, x.shape()[0],
                [=, columns = x.shape()[1], rows = x.f32(), to = inverse.f32()](std::int64_t r) {
                  const float* row = rows + r * columns;
                  to[r] = margin::inverse_norm(dot(row, row, columns));
                });
}

void gather_rows(CpuStream& stream, const ConstView& matrix, const ConstView& rows,
                 const View& gathered, const View& inverse) {
  const auto dot = margin_loops_for(stream).dot;
  const std::int64_t columns = matrix.shape()[1];
  for_each_item(stream, rows.shape()[0], [&](std::int64_t i) {
    const std::int64_t row = rows.as<std::int32_t>()[i];
    float* to = gathered.f32() + i * columns;
    if (row < 0 || row >= matrix.shape()[0]) {
      std::fill_n(to, columns, 0.0F);
      inverse.f32()[i] = -1;
      return;
    }
    const float* from = matrix.f32() + row * columns;
    std::copy_n(from, columns, to);
    inverse.f32()[i] = margin::inverse_norm(dot(from, from, columns));
  });
}

void margin_targets(CpuStream& stream, const MarginSpec& spec, const ConstView& x,
                    const ConstView& w, const ConstView& labels, std::int64_t first,
                    const ConstView& epochs, const View& targets, const View& cosines) {
  const auto dot = margin_loops_for(stream).dot;
  const auto margins = margin::margins_at(spec, epochs.absent() ? nullptr : epochs.f32());
  const std::int64_t columns = x.shape()[1], rows = w.shape()[0];
  for_each_item(stream, x.shape()[0], [&](std::int64_t n) {
    const std::int64_t row = labels.as<std::int32_t>()[n] - first;
    margin::Target target{-std::numeric_limits<float>::infinity(), 0};
    if (row >= 0 && row < rows) {
      const float* a = x.f32() + n * columns;
      const float* b = w.f32() + row * columns;
      const double c =
          margin::cosine_of(dot(a, a, columns), dot(b, b, columns), dot(a, b, columns));
      target = margin::target_of(spec, margins, c);
      if (!cosines.absent()) cosines.f32()[n] = static_cast<float>(c);
    }
    targets.f32()[2 * n] = target.logit;
    targets.f32()[2 * n + 1] = target.slope;
  });
}

void margin_softmax_part(CpuStream& stream, const MarginSpec& spec, const ConstView& products,
                         const ConstView& x_inverse, const ConstView& w_inverse,
                         const ConstView& labels, std::int64_t first, const ConstView& targets,
                         bool joins, const View& part) {
  const auto of_row = margin_loops_for(stream).part;
  const grid::MarginLogits logits(spec, products, x_inverse, w_inverse, labels, first, targets);
  for_each_item(stream, products.shape()[0], [&](std::int64_t n) {
    margin::Part found = of_row(row_of(logits, n), products.f32() + n * logits.classes);
    float* to = part.f32() + 3 * n;
    if (joins) found = margin::joined({to[0], to[1], to[2]}, found);
    to[0] = found.largest;
    to[1] = found.sum;
    to[2] = found.of_label;
  });
}

void margin_softmax_gradient(CpuStream& stream, const MarginSpec& spec, const ConstView& x_inverse,
                             const ConstView& w_inverse, const ConstView& labels,
                             std::int64_t first, const ConstView& targets, const ConstView& merged,
                             const ConstView& dloss, const View& products) {
  const auto of_row = margin_loops_for(stream).gradient;
  const grid::MarginLogits logits(spec, products, x_inverse, w_inverse, labels, first, targets);
  for_each_item(stream, products.shape()[0], [&](std::int64_t n) {
    const float* of_all = merged.f32() + 3 * n;
    of_row(row_of(logits, n), of_all[0], of_all[1], *dloss.f32(),
           products.f32() + n * logits.classes);
  });
}

void project_rows(CpuStream& stream, const ConstView& x, const ConstView& inverse, const View& g) {
  const MarginLoops loops = margin_loops_for(stream);
  const std::int64_t columns = x.shape()[1];
  for_each_item(stream, x.shape()[0], [&](std::int64_t r) {
    const float* row = x.f32() + r * columns;
    float* of_row = g.f32() + r * columns;
    loops.project(row, static_cast<double>(inverse.f32()[r]), loops.dot(row, of_row, columns),
                  of_row, columns);
  });
}

void margin_angles(CpuStream& stream, const MarginSpec& spec, const ConstView& cosines,
                   const ConstView& parts, std::int64_t begin, std::int64_t end, const View& sums) {
  const auto program = grid::margin_angles_of(spec, cosines, parts, begin, end, sums);
  for_each_item(stream, 1, [&](std::int64_t) { program.add(program.share_of(0, 1)); });
}

void softmax_shards_right(CpuStream& stream, const ConstView& parts, const ConstView& merged,
                          const ConstView& x_inverse, std::int64_t begin, std::int64_t end,
                          const View& right) {
  grid::softmax_shards_right(CpuGrid(stream), parts, merged, x_inverse, begin, end, right);
}

}  // namespace ringlet::impl
