// dispatch(): from the public function of an operation to its implementation for the stream's
// device: the overloads of implementations.h. A missing one does not compile or link. An operation
// that only one device has hands over a lambda for that device's stream; on the others it throws.
// The list of devices stands in device_list.h alone.
#pragma once

#include <string>
#include <type_traits>

#include "base/error.h"
#include "kernels/device.h"
#include "kernels/devices/device_list.h"

namespace ringlet {

namespace detail {

template <class F>
void dispatch_over(Stream& stream, const Work& work, F&, TypeList<>) {
  throw DeviceError(std::string(work.operation) + ": no implementation for device " +
                    stream.device().id().to_string());
}

template <class F, class First, class... Others>
void dispatch_over(Stream& stream, const Work& work, F& implementation,
                   TypeList<First, Others...>) {
  if constexpr (std::is_invocable_v<F&, First&>) {
    if (stream.device().id().kind == First::kKind) {
      return implementation(static_cast<First&>(stream));
    }
  }
  dispatch_over(stream, work, implementation, TypeList<Others...>{});
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
  detail::dispatch_over(stream, work, implementation, ConcreteStreams{});
}

}  // namespace ringlet
