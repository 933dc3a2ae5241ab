// The CPU's implementation of kernels/conv2d_relu_avg_pool2d.h is the one for the layout lanes. The
// contract has been checked.
#pragma once

#include "kernels/cpu/lanes/lanes.h"

namespace ringlet::impl {

using lanes::conv2d_relu_avg_pool2d_backward_data;
using lanes::conv2d_relu_avg_pool2d_backward_filter;
using lanes::conv2d_relu_avg_pool2d_forward;

}  // namespace ringlet::impl
