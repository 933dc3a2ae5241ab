#include "kernels/sgd.h"

#include "kernels/cpu/loops.h"
#include "kernels/elements.h"

namespace ringlet::impl {

void sgd_update(CpuStream& stream, const SgdSpec& spec, const ConstView& rates_view,
                const View& value_view, const ConstView& gradient_view, const View& velocity_view) {
  const element::SgdRates rates{rates_view.f32()[0], rates_view.f32()[1], spec.weight_decay,
                                spec.nesterov};
  float* value = value_view.f32();
  const float* gradient = gradient_view.f32();
  const std::int64_t n = value_view.count();
  if (velocity_view.absent()) {
    require(rates.momentum == 0, "sgd_update", "a momentum above 0 needs velocities");
    for_each_element(stream, n, [=](std::int64_t i) {
      float none = 0;
      element::sgd_step(rates, gradient[i], none, value[i]);
    });
    return;
  }
  float* velocity = velocity_view.f32();
  for_each_element(stream, n, [=](std::int64_t i) {
    element::sgd_step(rates, gradient[i], velocity[i], value[i]);
  });
}

}  // namespace ringlet::impl
