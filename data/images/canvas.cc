#include "data/images/canvas.h"

#include <algorithm>
#include <utility>

namespace ringlet::data {
namespace {

/// The pixel row or column that holds the coordinate, cut off at the canvas's first and last.
int cell(float coordinate) {
  return static_cast<int>(std::clamp(coordinate, 0.0F, static_cast<float>(kCanvasSide - 1)));
}

float blend(float from, float to, float t) { return from + (to - from) * t; }

}  // namespace

void Canvas::paint(const Trapezoid& shape, float tone) {
  const float top = pose_.centre_y + shape.top * pose_.scale_y;
  const float bottom = pose_.centre_y + shape.bottom * pose_.scale_y;
  for (int row = cell(top); row <= cell(bottom); ++row) {
    const float begin = std::max(top, static_cast<float>(row));
    const float end = std::min(bottom, static_cast<float>(row + 1));
    if (end <= begin) continue;
    // The edges at the middle of the part of the row that the shape covers.
    const float y = ((begin + end) / 2 - pose_.centre_y) / pose_.scale_y;
    const float t = (y - shape.top) / (shape.bottom - shape.top);
    const auto to_pixels = [&](float x) {
      return pose_.centre_x + (x + pose_.slant * y) * pose_.scale_x;
    };
    float left = to_pixels(blend(shape.top_left, shape.bottom_left, t));
    float right = to_pixels(blend(shape.top_right, shape.bottom_right, t));
    if (left > right) std::swap(left, right);
    paint_row(row, left, right, end - begin, tone);
  }
}

void Canvas::paint_both(const Trapezoid& shape, float tone) {
  paint(shape, tone);
  paint({shape.top, shape.bottom, -shape.top_right, -shape.top_left, -shape.bottom_right,
         -shape.bottom_left},
        tone);
}

void Canvas::paint_row(int row, float left, float right, float strength, float tone) {
  for (int column = cell(left); column <= cell(right); ++column) {
    const float covered = std::min(right, static_cast<float>(column + 1)) -
                          std::max(left, static_cast<float>(column));
    float& pixel = at(row, column);
    pixel += (tone - pixel) * std::clamp(covered, 0.0F, 1.0F) * strength;
  }
}

}  // namespace ringlet::data
