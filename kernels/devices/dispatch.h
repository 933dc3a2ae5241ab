// dispatch(): from the public function of an operation to its implementation for the stream's
// device: the overloads of implementations.h. A missing one does not compile or link. An operation
// that only one device has hands over a lambda for that device's stream; on the others it throws.
//
//   dispatch(stream, work, impl::any::copy, x, y);
//   dispatch_in_f32(stream, work, impl::any::relu_forward, x, y);    narrow views as in_f32.h says
// The list of devices stands in device_list.h alone.
#pragma once

#include <string>
#include <type_traits>

#include "base/error.h"
#include "kernels/cpu/in_f32.h"
#include "kernels/device.h"
#include "kernels/devices/device_list.h"

namespace ringlet {

namespace detail {

template <class F, class... Arguments>
void dispatch_over(Stream& stream, const Work& work, F&, TypeList<>, const Arguments&...) {
  throw DeviceError(std::string(work.operation) + ": no implementation for device " +
                    stream.device().id().to_string());
}

template <class F, class First, class... Others, class... Arguments>
void dispatch_over(Stream& stream, const Work& work, F& implementation, TypeList<First, Others...>,
                   const Arguments&... arguments) {
  if constexpr (std::is_invocable_v<F&, First&, const Arguments&...>) {
    if (stream.device().id().kind == First::kKind) {
      return implementation(static_cast<First&>(stream), arguments...);
    }
  }
  dispatch_over(stream, work, implementation, TypeList<Others...>{}, arguments...);
}

}  // namespace detail

/// Counts `work`, and calls `implementation(concrete_stream, arguments...)` unless the device is
/// `meta`.
template <class F, class... Arguments>
void dispatch(Stream& stream, const Work& work, F&& implementation, const Arguments&... arguments) {
  if (WorkTotals* totals = stream.totals()) {
    totals->flops += work.flops;
    totals->bytes += work.bytes;
    ++totals->operations;
  }
  if (stream.device().id().kind == DeviceKind::meta) return;
  const ScopedSpan span(stream.tracer(), work.operation, "kernel",
                        static_cast<std::int64_t>(work.bytes));
  detail::dispatch_over(stream, work, implementation, ConcreteStreams{}, arguments...);
}

/// The same, with bf16 and f16 as f32 where a device's kernels know f32 alone.
template <class F, class... Arguments>
void dispatch_in_f32(Stream& stream, const Work& work, const F& implementation,
                     const Arguments&... arguments) {
  dispatch(stream, work, [&](auto& concrete) {
    InF32 in_f32(concrete);
    implementation(concrete, in_f32(arguments)...);
  });
}

}  // namespace ringlet
