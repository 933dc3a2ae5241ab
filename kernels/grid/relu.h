// The kernels of kernels/relu.h.
#pragma once

#include "kernels/elements.h"
#include "kernels/grid/map.h"
#include "kernels/tensor.h"

namespace ringlet::grid {

struct Relu {
  RINGLET_HOST_DEVICE float operator()(float x) const { return element::relu(x); }
};

struct ReluGradient {
  RINGLET_HOST_DEVICE float operator()(float y, float dy) const {
    return element::relu_gradient(y, dy);
  }
};

/// Floor: reads 4 N bytes, writes 4 N.
template <class Grid>
void relu_forward(Grid& grid, const ConstView& x, const View& y) {
  grid.for_each_pack("relu_forward", x.storage(), make_map(Relu{}, y.f32(), x.f32()));
}

/// Floor: reads 8 N bytes, 12 N with a beta, writes 4 N.
template <class Grid>
void relu_backward(Grid& grid, const ConstView& y, const ConstView& dy, float beta,
                   const View& dx) {
  map_blended(grid, "relu_backward", y.storage(), beta, dx.f32(), ReluGradient{}, y.f32(),
              dy.f32());
}

}  // namespace ringlet::grid
