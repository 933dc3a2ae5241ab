#include <algorithm>
#include <string_view>

#include "app/inspect/parts.h"

namespace ringlet::app::inspect {
namespace {

constexpr std::int64_t kColumns = 96;  // of a terminal
constexpr std::string_view kShades = " .:-=+*#%@";

/// One image at a size in letters.
struct Canvas {
  std::span<const std::uint8_t> pixels;
  std::int64_t height, width;   // in pixels
  std::int64_t lines, columns;  // in letters

  /// The mean of the pixels that a letter stands for.
  char letter(std::int64_t line, std::int64_t column) const {
    const std::int64_t top = line * height / lines, left = column * width / columns;
    const std::int64_t bottom = std::max(top + 1, (line + 1) * height / lines);
    const std::int64_t right = std::max(left + 1, (column + 1) * width / columns);
    std::int64_t sum = 0;
    for (std::int64_t y = top; y < bottom; ++y) {
      for (std::int64_t x = left; x < right; ++x) {
        sum += pixels[static_cast<std::size_t>(y * width + x)];
      }
    }
    constexpr std::int64_t kLevels = 256;
    const std::int64_t mean = sum / ((bottom - top) * (right - left));
    return kShades[static_cast<std::size_t>(mean) * kShades.size() / kLevels];
  }
};

}  // namespace

std::string draw(std::span<const std::uint8_t> images, std::int64_t height, std::int64_t width) {
  if (height <= 0 || width <= 0) return "";
  const auto pixels = static_cast<std::size_t>(height * width);
  const std::int64_t columns = std::min(width, kColumns - 2);
  const std::int64_t lines = std::max<std::int64_t>(1, (height * columns / width + 1) / 2);
  const auto in_a_row =
      static_cast<std::size_t>(std::max<std::int64_t>(1, kColumns / (columns + 2)));
  const std::size_t count = images.size() / pixels;
  std::string text;
  for (std::size_t first = 0; first < count; first += in_a_row) {
    if (first > 0) text += "\n";
    for (std::int64_t line = 0; line < lines; ++line) {
      std::string row;
      for (std::size_t i = first; i < std::min(count, first + in_a_row); ++i) {
        const Canvas canvas{images.subspan(i * pixels, pixels), height, width, lines, columns};
        row += "  ";
        for (std::int64_t column = 0; column < columns; ++column)
          row += canvas.letter(line, column);
      }
      text.append(row, 0, row.find_last_not_of(' ') + 1).append("\n");
    }
  }
  return text;
}

}  // namespace ringlet::app::inspect
