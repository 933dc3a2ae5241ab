#include "kernels/grid/loss_scale.h"

#include "kernels/cpu/loops.h"
#include "kernels/implementations.h"

namespace ringlet::impl {

void loss_scale_begin(CpuStream&, const ConstView& state, const ConstView& newest,
                      const ConstView& table, const View& seed, const View& rates) {
  const auto begin = grid::loss_scale_beginning(state, newest, table, seed, rates);
  for (std::int64_t i = 0; i < rates.count(); ++i) begin(i);
}

void loss_scale_end(CpuStream&, const LossScaleSpec& spec, const View& norm, const View& state,
                    const View& factor, const View& told) {
  grid::loss_scale_ending(spec, norm, state, factor, told)(0);
}

}  // namespace ringlet::impl
