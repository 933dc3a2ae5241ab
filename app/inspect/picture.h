// Grey images as text: two rows of pixels a line, since letters are about twice as high as wide.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ringlet::app::inspect {

/// `images` holds whole images of height x width, row-major, 0 black. They are drawn side by side,
/// as many as fit into a terminal, then below; larger ones are averaged down.
std::string draw(std::span<const std::uint8_t> images, std::int64_t height, std::int64_t width);

}  // namespace ringlet::app::inspect
