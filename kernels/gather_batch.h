// A batch from a data set that lies on the device: gather in the epoch's order, normalise, lay out.
//
//   s = sampler.index(position.epoch, position.first + n)
//   y[n,c,h,w] = scale(images[s,c,h,w]),   batch_labels[n] = labels[s]
//
// The same bits as data/'s loader makes on the host (sampling.h has what both share).
#pragma once

#include "base/sampling.h"
#include "kernels/batch_position.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

struct GatherSpec {
  Sampler sampler{1, 0};
  PixelScale scale{0, 1};
};

/// images u8 [S, C, H, W] nchw and labels i32 [S], S = sampler.size(). position: a BatchPosition in
/// device memory (batch_position.h). y f32 [N, C, H, W], any layout (lanes beyond N get 0).
/// batch_labels i32 [N]. Positions beyond the data set throw ContractError on the CPU. A GPU cannot
/// throw: there their pixels are NaN and their labels -1.
void gather_batch(Stream& stream, const GatherSpec& spec, ConstView images, ConstView labels,
                  ConstView position, View y, View batch_labels);

}  // namespace ringlet
