// The CPU's implementation of kernels/adamw.h. Compiled without math's errno: with it, a square
// root would be a call that no vector loop can have.
#include "kernels/adamw.h"

#include "kernels/cpu/decay_loop.h"
#include "kernels/elements.h"

namespace ringlet::impl {

void adamw_update(CpuStream& stream, const AdamWSpec& spec, const ConstView& rates_view,
                  const View& value_view, const ConstView& gradient_view, const View& mean_view,
                  const View& square_view, const ConstView& scale_view, const ConstView& decays) {
  const float* on_device = rates_view.f32();
  const element::AdamWRates rates{on_device[0], spec.beta2,   spec.square_share, on_device[1],
                                  on_device[2], on_device[3], spec.epsilon};
  const float scale = scale_view.absent() ? 1.0F : *scale_view.f32();
  if (scale == 0) return;
  float* value = value_view.f32();
  const float* gradient = gradient_view.f32();
  float* mean = mean_view.f32();
  float* square = square_view.f32();
  const std::int64_t n = value_view.count();
  stream.parallel_for(chunks_of(n), [=](std::int64_t first, std::int64_t last, int) {
    for (DecayRun run(decays, n, first, last); run.next();) {
      element::AdamWRates own = rates;
      if (!run.decays) own.decay = 0;
#pragma omp simd
      for (std::int64_t i = run.begin; i < run.end; ++i) {
        element::adamw_step(own, scale * gradient[i], mean[i], square[i], value[i]);
      }
    }
  });
}

}  // namespace ringlet::impl
