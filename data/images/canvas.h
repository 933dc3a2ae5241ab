// A small grey picture, and the one shape that garments are cut from: the trapezoid.
//
// Shapes are given in design units: x to the right and y downwards, the garment roughly within
// [-1, 1] x [-1, 1]. A pose places them on the 28 x 28 pixels: size, position and slant (a shear,
// so that horizontal edges stay horizontal and a shape is a run of pixels in every row).
#pragma once

#include <array>
#include <cstdint>

namespace ringlet::data {

inline constexpr int kCanvasSide = 28;
inline constexpr int kCanvasPixels = kCanvasSide * kCanvasSide;

/// Between y = `top` and y = `bottom`; its left and right edges run straight from the values at the
/// top to those at the bottom.
struct Trapezoid {
  float top, bottom;
  float top_left, top_right;
  float bottom_left, bottom_right;
};

struct Pose {
  float scale_x = 12, scale_y = 12;    ///< pixels per design unit; scale_x < 0 mirrors
  float centre_x = 14, centre_y = 14;  ///< pixels
  float slant = 0;                     ///< how far x moves per unit of y
};

class Canvas {
 public:
  explicit Canvas(const Pose& pose) : pose_(pose) {}

  /// Paints over with `tone` (0 black .. 1 white), with soft edges.
  void paint(const Trapezoid& shape, float tone);
  /// Paints the shape and its mirror image about x = 0.
  void paint_both(const Trapezoid& shape, float tone);

  float& at(int row, int column) {
    return pixels_[static_cast<std::size_t>(row * kCanvasSide + column)];
  }
  std::array<float, kCanvasPixels>& pixels() { return pixels_; }

 private:
  void paint_row(int row, float left, float right, float strength, float tone);

  Pose pose_;
  std::array<float, kCanvasPixels> pixels_{};
};

}  // namespace ringlet::data
