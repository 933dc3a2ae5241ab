#include "kernels/cuda/conv2d_relu_avg_pool2d.h"

#include <string>

namespace ringlet::impl {

namespace {

[[noreturn]] void refuse(const CudaStream& stream, const char* operation) {
  throw DeviceError(std::string(operation) + " on " + stream.device().id().to_string() +
                    ": exists in the layout lanes on the CPU only");
}

}  // namespace

void conv2d_relu_avg_pool2d_forward(CudaStream& stream, const Conv2dSpec&, const ConstView&,
                                    const ConstView&, const ConstView&, const View&, const View&) {
  refuse(stream, "conv2d_relu_avg_pool2d_forward");
}

void conv2d_relu_avg_pool2d_backward_data(CudaStream& stream, const Conv2dSpec&, const ConstView&,
                                          const ConstView&, const ConstView&, float, const View&) {
  refuse(stream, "conv2d_relu_avg_pool2d_backward_data");
}

void conv2d_relu_avg_pool2d_backward_filter(CudaStream& stream, const Conv2dSpec&, const ConstView&,
                                            const ConstView&, const ConstView&, float, const View&,
                                            float, const View&) {
  refuse(stream, "conv2d_relu_avg_pool2d_backward_filter");
}

}  // namespace ringlet::impl
