// What ranks exchange and update by rows (rows.h, row_sample.h, row_updates.h, softmax_shards.h):
// the code of GPUs.
#include "kernels/rows.h"

#include "kernels/cpu/cpu_grid.h"
#include "kernels/grid/row_sample.h"
#include "kernels/grid/row_updates.h"
#include "kernels/grid/rows.h"
#include "kernels/grid/softmax_shards.h"

namespace ringlet::impl {

namespace {

void require_ascending(const char* operation, const ConstView& rows, const ConstView& whole) {
  std::int32_t last = -1;
  for (std::int64_t i = 0; i < rows.count(); ++i) {
    const std::int32_t row = rows.as<std::int32_t>()[i];
    if (row == -1) continue;  // none
    require(row > last && row < whole.shape()[0], operation,
            "the rows are of the matrix, in ascending order, and none comes twice");
    last = row;
  }
}

}  // namespace

void rows_forward(CpuStream& stream, const ConstView& x, const View& rows) {
  in_lanes(x);  // refuses nhwc
  grid::rows_forward(CpuGrid(stream), x, rows);
}

void rows_backward(CpuStream& stream, const ConstView& drows, float beta, const View& dx) {
  grid::rows_backward(CpuGrid(stream), drows, beta, dx);
}

void sgd_update_rows(CpuStream& stream, const SgdSpec& spec, const ConstView& rates,
                     const ConstView& rows, const View& value, const ConstView& gradient,
                     const View& velocity, const ConstView& scale) {
  require(!velocity.absent() || rates.f32()[1] == 0, "sgd_update_rows",
          "a momentum above 0 needs velocities");
  require_ascending("sgd_update_rows", rows, value);
  grid::sgd_update_rows(CpuGrid(stream), spec, rates, rows, value, gradient, velocity, scale);
}

void adamw_update_rows(CpuStream& stream, const AdamWSpec& spec, const ConstView& rates,
                       const ConstView& rows, const View& value, const ConstView& gradient,
                       const View& mean, const View& square, const ConstView& scale,
                       const ConstView& corrections) {
  require_ascending("adamw_update_rows", rows, value);
  grid::adamw_update_rows(CpuGrid(stream), spec, rates, rows, value, gradient, mean, square, scale,
                          corrections);
}

void adamw_count_rows(CpuStream& stream, const AdamWSpec& spec, const ConstView& lr,
                      const ConstView& rates, const ConstView& rows, const View& counts,
                      const View& corrections, const ConstView& scale) {
  require_ascending("adamw_count_rows", rows, counts);
  grid::adamw_count_rows(CpuGrid(stream), spec, lr, rates, rows, counts, corrections, scale);
}

void find_rows(CpuStream& stream, const ConstView& rows, const ConstView& labels,
               std::int64_t first, std::int64_t at, bool joins, const View& columns) {
  grid::find_rows(CpuGrid(stream), rows, labels, first, at, joins, columns);
}

void softmax_shard_forward(CpuStream& stream, const ConstView& logits, const ConstView& labels,
                           std::int64_t first, const View& part) {
  grid::softmax_shard_forward(CpuGrid(stream), logits, labels, first, part);
}

void softmax_shards_merge(CpuStream& stream, const ConstView& parts, const View& merged) {
  grid::softmax_shards_merge(CpuGrid(stream), parts, merged);
}

void softmax_shards_loss(CpuStream& stream, const ConstView& merged, const View& loss,
                         const View& sum) {
  grid::softmax_shards_loss(CpuGrid(stream), merged, loss, sum);
}

void softmax_shard_backward(CpuStream& stream, const ConstView& logits, const ConstView& labels,
                            std::int64_t first, const ConstView& merged, const ConstView& dloss,
                            float beta, const View& dlogits) {
  grid::softmax_shard_backward(CpuGrid(stream), logits, labels, first, merged, dloss, beta,
                               dlogits);
}

}  // namespace ringlet::impl
