// Pictures inside a page.
#pragma once

#include <cstdint>
#include <span>

#include "app/report/html.h"

namespace ringlet::app::report {

/// A PNG in a data URI of [height, width, channels] pixels; channels are 1, grey, or 3.
Html image_uri(std::span<const std::uint8_t> pixels, int width, int height, int channels);

}  // namespace ringlet::app::report
