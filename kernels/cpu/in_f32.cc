#include "kernels/cpu/in_f32.h"

#include "base/error.h"
#include "kernels/implementations.h"

namespace ringlet {

InF32<CpuStream>::~InF32() {
  for (int i = 0; i < results_; ++i) {
    const Result& result = stored_[static_cast<std::size_t>(i)];
    impl::cast(stream_, result.wide, result.narrow);
  }
}

ConstView InF32<CpuStream>::operator()(const ConstView& view) {
  return widens(view) ? ConstView(widen(view)) : view;
}

View InF32<CpuStream>::operator()(const View& view) {
  if (!widens(view)) return view;
  const View wide = widen(view);
  stored_[static_cast<std::size_t>(results_++)] = {wide, view};
  return wide;
}

bool InF32<CpuStream>::widens(const ConstView& view) const {
  return !as_they_are_ && !view.absent() && is_narrow(view.dtype());
}

View InF32<CpuStream>::widen(const ConstView& view) {
  require(used_ < kMost, "InF32", "an operation has more narrow views than there is scratch for");
  const std::int64_t bytes = view.storage() * size_of(DType::f32);
  const View wide(stream_.scratch(used_++, bytes), view.shape(), DType::f32, view.layout());
  impl::cast(stream_, view, wide);
  return wide;
}

}  // namespace ringlet
