// Convolution as a matrix product: the pixels under each position of the window, as columns.
//
// For the channels of one group of one convolution and a run of images, the columns are
//
//   columns[(c, p, q)][(n, i, j)] = x[n][c][i*sh - ph + p*dh][j*sw - pw + q*dw]     (0 outside)
//
// a row-major matrix with C*KH*KW rows and images*OH*OW columns.
#pragma once

#include <cstdint>

#include "kernels/conv2d.h"

namespace ringlet::impl {

struct ColumnGeometry {
  Conv2dSpec spec;
  std::int64_t channels = 0;           // of one group
  std::int64_t height = 0, width = 0;  // of the image
  std::int64_t window_h = 0, window_w = 0;
  std::int64_t out_h = 0, out_w = 0;
  std::int64_t image_stride = 0;  // elements from one image to the next

  std::int64_t rows() const { return channels * window_h * window_w; }
  std::int64_t pixels() const { return out_h * out_w; }
};

/// x: the group's first channel of the first image. columns [rows()][images * pixels()].
void im2col(const ColumnGeometry& geometry, const float* x, std::int64_t images, float* columns);

/// The transpose: adds each element of `columns` to the pixel that im2col takes it from.
void col2im_add(const ColumnGeometry& geometry, const float* columns, std::int64_t images,
                float* dx);

}  // namespace ringlet::impl
