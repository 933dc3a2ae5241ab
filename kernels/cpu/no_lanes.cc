// Stands in for the kernels of the lanes layout in builds without them.
#include "kernels/cpu/lanes/lanes.h"
#include "kernels/error.h"

namespace ringlet::lanes {

namespace {

[[noreturn]] void missing(const char* operation) {
  throw DeviceError(std::string(operation) + ": this build has no kernels for the lanes layout");
}

}  // namespace

void conv2d_forward(CpuStream&, const Conv2dSpec&, ConstView, ConstView, ConstView, Activation,
                    View) {
  missing("conv2d_forward");
}
void conv2d_backward_data(CpuStream&, const Conv2dSpec&, ConstView, ConstView, float, View) {
  missing("conv2d_backward_data");
}
void conv2d_backward_filter(CpuStream&, const Conv2dSpec&, ConstView, ConstView, float, View) {
  missing("conv2d_backward_filter");
}
void avg_pool2d_forward(CpuStream&, const Pool2dSpec&, ConstView, View) {
  missing("avg_pool2d_forward");
}
void avg_pool2d_backward(CpuStream&, const Pool2dSpec&, ConstView, float, View) {
  missing("avg_pool2d_backward");
}
void max_pool2d_forward(CpuStream&, const Pool2dSpec&, ConstView, View, View) {
  missing("max_pool2d_forward");
}
void max_pool2d_backward(CpuStream&, const Pool2dSpec&, ConstView, ConstView, float, View) {
  missing("max_pool2d_backward");
}
void linear_forward(CpuStream&, ConstView, ConstView, ConstView, Activation, View) {
  missing("linear_forward");
}
void linear_backward_data(CpuStream&, ConstView, ConstView, float, View) {
  missing("linear_backward_data");
}
void linear_backward_weight(CpuStream&, ConstView, ConstView, float, View) {
  missing("linear_backward_weight");
}
void bias_forward(CpuStream&, ConstView, ConstView, View) { missing("bias_forward"); }
void bias_backward(CpuStream&, ConstView, float, View) { missing("bias_backward"); }

}  // namespace ringlet::lanes
