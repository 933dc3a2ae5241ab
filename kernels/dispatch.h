// dispatch(): from the public function of an operation to its implementation for the stream's
// device. The implementations are overloads `impl::operation(CpuStream&, ...)`. A missing overload
// is a compile error. The list of devices stands in device_list.h alone.
#pragma once

#include "kernels/device.h"
#include "kernels/device_list.h"
#include "kernels/error.h"

namespace ringlet {

namespace detail {

template <class F, class... Streams>
void dispatch_over(Stream& stream, F& implementation, TypeList<Streams...>) {
  const DeviceKind kind = stream.device().id().kind;
  const bool found =
      ((kind == Streams::kKind && (implementation(static_cast<Streams&>(stream)), true)) || ...);
  if (!found) {
    throw DeviceError("no implementation for device " + stream.device().id().to_string());
  }
}

}  // namespace detail

/// Counts `work`, and calls `implementation(concrete_stream)` unless the device is `meta`.
template <class F>
void dispatch(Stream& stream, const Work& work, F&& implementation) {
  if (WorkTotals* totals = stream.totals()) {
    totals->flops += work.flops;
    totals->bytes += work.bytes;
    ++totals->operations;
  }
  if (stream.device().id().kind == DeviceKind::meta) return;
  const ScopedSpan span(stream.tracer(), work.operation, "kernel",
                        static_cast<std::int64_t>(work.bytes));
  detail::dispatch_over(stream, implementation, ConcreteStreams{});
}

}  // namespace ringlet
