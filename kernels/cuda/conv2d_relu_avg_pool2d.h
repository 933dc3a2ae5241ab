// kernels/conv2d_relu_avg_pool2d.h does not exist on GPUs, as
// conv2d_relu_avg_pool2d_supported() says; whoever calls it all the same gets a DeviceError.
#pragma once

#include "kernels/conv2d_relu_avg_pool2d.h"
#include "kernels/cuda/cuda_device.h"

namespace ringlet::impl {

void conv2d_relu_avg_pool2d_forward(CudaStream& stream, const Conv2dSpec& spec, const ConstView& x,
                                    const ConstView& w, const ConstView& bias, const View& y,
                                    const View& mask);
void conv2d_relu_avg_pool2d_backward_data(CudaStream& stream, const Conv2dSpec& spec,
                                          const ConstView& w, const ConstView& dy,
                                          const ConstView& mask, float beta, const View& dx);
void conv2d_relu_avg_pool2d_backward_filter(CudaStream& stream, const Conv2dSpec& spec,
                                            const ConstView& x, const ConstView& dy,
                                            const ConstView& mask, float beta_dw, const View& dw,
                                            float beta_db, const View& db);

}  // namespace ringlet::impl
