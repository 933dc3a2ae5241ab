// From a picture of any size to what a model sees: the model's channels, height and width, and dark
// where its training images were dark. The steps, of which a picture takes those that it needs:
//
//   1. turned upright                        (already done when read: data/images/exif.h)
//   2. alpha laid over white
//   3. colour to grey by luma
//   4. inverted
//   5. scaled to fit, the shape kept
//   6. padded in the border's own brightness
//   7. levels stretched
//
// The background of a photograph is hardly ever as dark as that of the training images, and a model
// takes it for a thing that fills the picture. Stretching makes the background black and the
// brightest part white. A picture that has the model's size and channels already comes through bit
// for bit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/images/image.h"
#include "data/images/rgbx.h"

namespace ringlet::data {

/// What a model sees.
struct ImageTarget {
  int channels = 1;  ///< 1 grey, 3 RGB
  int height = 0;
  int width = 0;
  double background = 0;  ///< pixel / 255 of the training images' borders
};

enum class Invert : std::uint8_t { automatic, on, off };

struct PreparedImage {
  std::vector<std::uint8_t> pixels;  ///< [channels, height, width]
  bool inverted = false;
  std::vector<std::string> steps;  ///< what was done, in words, in order; empty: nothing
};

/// Prepares a photograph for a model that sees the middle of them, `size` x `size` pixels of red,
/// green and blue: data/images/centre_crop.h. Inverts it for Invert::on alone. `turned`: its reader
/// has turned it upright.
PreparedImage prepare_photograph(const RgbxView& picture, int size, Invert invert, bool turned);

/// Prepares `image` for `target`.
///   `automatic`   inverts where one of the picture's border and the target's background is lighter
///                 than middle grey and the other is not; the median of the border counts
///   `stretch`     stretches the levels of a picture that was scaled and whose border is far
///                 lighter than the background (darker, for a model of light images)
/// Throws DataError for a target of other than 1 or 3 channels.
PreparedImage prepare_image(const Image& image, const ImageTarget& target, Invert invert,
                            bool stretch = true);

}  // namespace ringlet::data
