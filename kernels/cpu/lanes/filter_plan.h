// The filter gradient, cut into tiles of outputs x taps: for plain and for pooled gradients.
#pragma once

#include <cstdint>

#include "kernels/conv2d.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/lanes/conv2d_plan.h"

namespace ringlet::lanes {

struct FilterPlan {
  /// `y` is the shape of the convolution's result, whether or not it is pooled afterwards.
  FilterPlan(const Conv2dSpec& spec, ConstView x, const Shape& y, View dw);

  Conv2dSpec spec;
  ConstView x;
  View dw;
  Axis rows, cols;
  const float* dy = nullptr;            ///< [blocks][O][height][width][16]
  const std::uint16_t* mask = nullptr;  ///< of a pooled dy: [blocks][O][height][width][2][2]
  std::int64_t height = 0;              ///< of dy as it is stored
  std::int64_t width = 0;
  float beta = 0;
};

void run_filter(CpuStream& stream, const FilterPlan& plan);

}  // namespace ringlet::lanes
