#include "kernels/row_updates.h"

#include "kernels/contract.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

namespace {

void require_rows(const char* name, const ConstView& rows, const ConstView& value,
                  const ConstView& gradient, const ConstView& scale) {
  require_dtype(name, rows, DType::i32);
  require_rank(name, rows, 1);
  require_rank(name, value, 2);
  require_dense(name, value, value.shape());
  require_dense(name, gradient, Shape{rows.shape()[0], value.shape()[1]});
  require_update_views(name, scale, {}, value.count());
}

}  // namespace

void sgd_update_rows(Stream& stream, const SgdSpec& spec, ConstView rates, ConstView rows,
                     View value, ConstView gradient, View velocity, ConstView scale) {
  constexpr const char* kName = "sgd_update_rows";
  require_dense(kName, rates, Shape{2});
  require_rows(kName, rows, value, gradient, scale);
  if (!velocity.absent()) require_dense(kName, velocity, value.shape());
  const int arrays = velocity.absent() ? 3 : 5;
  const Work work{kName, 7.0 * static_cast<double>(gradient.count()),
                  arrays * total_bytes(gradient) + total_bytes(rows)};
  dispatch(stream, work, impl::any::sgd_update_rows, spec, rates, rows, value, gradient, velocity,
           scale);
}

void adamw_update_rows(Stream& stream, const AdamWSpec& spec, ConstView rates, ConstView rows,
                       View value, ConstView gradient, View mean, View square, ConstView scale,
                       ConstView corrections) {
  constexpr const char* kName = "adamw_update_rows";
  require_dense(kName, rates, Shape{4});
  require_rows(kName, rows, value, gradient, scale);
  require_dense(kName, mean, value.shape());
  require_dense(kName, square, value.shape());
  if (!corrections.absent()) require_dense(kName, corrections, Shape{rows.shape()[0], 2});
  require(spec.epsilon > 0, kName, "epsilon must be above 0: averages start at 0");
  const Work work{kName, 14.0 * static_cast<double>(gradient.count()),
                  7.0 * total_bytes(gradient) + total_bytes(rows)};
  dispatch(stream, work, impl::any::adamw_update_rows, spec, rates, rows, value, gradient, mean,
           square, scale, corrections);
}

void adamw_count_rows(Stream& stream, const AdamWSpec& spec, ConstView lr, ConstView rates,
                      ConstView rows, View counts, View corrections, ConstView scale) {
  constexpr const char* kName = "adamw_count_rows";
  require_dense(kName, lr, Shape{1});
  require_dense(kName, rates, Shape{4});
  require_dtype(kName, rows, DType::i32);
  require_rank(kName, rows, 1);
  require_rank(kName, counts, 1);
  require_dense(kName, counts, counts.shape());
  require_dense(kName, corrections, Shape{rows.shape()[0], 2});
  if (!scale.absent()) require_dense(kName, scale, Shape{1});
  const Work work{kName, 80.0 * static_cast<double>(rows.count()),
                  3.0 * total_bytes(rows) + total_bytes(corrections)};
  dispatch(stream, work, impl::any::adamw_count_rows, spec, lr, rates, rows, counts, corrections,
           scale);
}

}  // namespace ringlet
