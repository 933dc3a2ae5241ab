#include "kernels/loss_scale.h"

#include "kernels/contract.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

void loss_scale_begin(Stream& stream, ConstView state, ConstView newest, ConstView table, View seed,
                      View rates) {
  constexpr const char* kName = "loss_scale_begin";
  require_dense(kName, state, Shape{kLossScaleState});
  require_dense(kName, newest, Shape{1});
  require_dense(kName, seed, Shape{1});
  require_rank(kName, rates, 1);
  require_dense(kName, rates, rates.shape());
  require_rank(kName, table, 2);
  require(table.shape()[0] >= 1, kName, "the table should have a row");
  require_dense(kName, table, Shape{table.shape()[0], rates.count()});
  const Work work{kName, 1, total_bytes(state, newest, rates, rates, seed)};
  dispatch(stream, work, impl::any::loss_scale_begin, state, newest, table, seed, rates);
}

void loss_scale_end(Stream& stream, const LossScaleSpec& spec, View norm, View state, View factor,
                    View told) {
  constexpr const char* kName = "loss_scale_end";
  require_dense(kName, norm, Shape{1});
  require_dense(kName, state, Shape{kLossScaleState});
  require_dense(kName, factor, Shape{2});
  require_dense(kName, told, Shape{2});
  require(spec.growth_interval >= 1, kName, "the scale grows after at least one step");
  const Work work{kName, 4, total_bytes(norm, state, state, factor, told)};
  dispatch(stream, work, impl::any::loss_scale_end, spec, norm, state, factor, told);
}

}  // namespace ringlet
