// What a model sees of a photograph, but for random crops: torchvision's Resize and CenterCrop.
//
//   1. the shorter edge becomes floor(size * 8 / 7): 256 for 224, 146 for 128, 36 for 32
//      the other one keeps the shape: int(shorter * long / short)
//   2. the middle of that, size x size; top = round((height - size) / 2), half to even
//
// A picture of size x size pixels is taken as it is: one that was made for the model needs neither.
#pragma once

#include <cstdint>

#include "data/images/resample.h"
#include "data/images/rgbx.h"

namespace ringlet::data {

/// Pixels of the shorter edge before the middle is cut out.
int resized_short_edge(int size);

/// Writes the middle of `image` to target.planes, [channels, size, size].
void centre_crop(const RgbxView& image, int size, Resampler& resampler,
                 const ResampleTarget& target);

}  // namespace ringlet::data
