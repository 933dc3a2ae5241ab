#include "kernels/host_copy.h"

#include "kernels/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

void copy_from_host(Stream& stream, const void* host, View y) {
  dispatch(stream, {"copy_from_host", 0, static_cast<double>(y.bytes())},
           [&](auto& concrete) { impl::copy_from_host(concrete, host, y); });
}

void copy_to_host(Stream& stream, ConstView x, void* host) {
  dispatch(stream, {"copy_to_host", 0, static_cast<double>(x.bytes())},
           [&](auto& concrete) { impl::copy_to_host(concrete, x, host); });
}

float read_scalar(Stream& stream, ConstView x) {
  require(x.count() == 1 && x.dtype() == DType::f32, "read_scalar", "takes one f32 element");
  float value = 0;
  copy_to_host(stream, x, &value);
  return value;
}

}  // namespace ringlet
