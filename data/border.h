// Brightness of an image along its edge, which tells dark on light from light on dark.
#pragma once

#include <cstdint>
#include <span>

#include "data/dataset.h"

namespace ringlet::data {

/// Mean of pixel / 255 over the outermost rows and columns of all channels. `image`: [channels,
/// height, width] row-major, no extent 0.
double border_brightness(std::span<const std::uint8_t> image, std::int64_t channels,
                         std::int64_t height, std::int64_t width);

/// The same over the first samples of a set, at most a thousand: enough to tell its background.
double border_brightness(const Dataset& dataset);

}  // namespace ringlet::data
