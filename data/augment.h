// How training images are varied: torchvision's RandomHorizontalFlip, RandomCrop and
// RandomResizedCrop, with its parameters and in its order of draws.
//
//   none                  as for evaluation
//   flip                  mirrored with probability 1/2
//   crop-flip             black pixels around it, an eighth of a side wide (4 at 32 pixels); a part
//                         of the image's size of that; then as flip
//   random-resized-crop   a part of 8 % to 100 % of the area, its width 3/4 to 4/3 of its height,
//                         resized to the image's size; then as flip
//
// Black is added before pixels are normalised, as RandomCrop(32, padding=4) does on a picture.
//
// What becomes of a sample is a function of (seed, epoch, its index in the data set). So it depends
// on no thread, replica or batch, and a run that was resumed sees the same pixels. The numbers are
// not those of PyTorch's generator; their distributions are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/images/rgbx.h"
#include "data/random.h"

namespace ringlet::data {

enum class Augment : std::uint8_t { none, flip, crop_flip, random_resized_crop };

/// "none", "flip", "crop-flip", "random-resized-crop", in the order of Augment.
const std::vector<std::string>& augment_names();
const char* name_of(Augment augment);
/// Throws DataError for a name that is none of those.
Augment parse_augment(const std::string& name);

/// What a training run varies its samples by.
struct Augmentation {
  Augment kind = Augment::none;
  std::uint64_t seed = 0;
};

/// How one sample is varied in one epoch.
struct Variation {
  Augment kind = Augment::none;
  std::uint64_t key = 0;  ///< of the random numbers
};
Variation variation_of(const Augmentation& augmentation, std::int64_t epoch, std::int64_t index);

/// A part of an image, mirrored or not. For crop-flip it may reach beyond the image's edges.
struct Cut {
  Box box;
  bool mirrored = false;
};

/// The part that random-resized-crop takes of `width` x `height` pixels. Draws area and shape, ten
/// times at most, then top, left and the flip. Where ten parts did not fit, the largest one in the
/// middle whose shape is within the bounds.
Cut draw_random_resized_crop(int width, int height, Random& random);
/// The part that crop-flip takes. Draws top, left and the flip.
Cut draw_crop_flip(int width, int height, Random& random);

/// An image, [channels, height, width].
struct Planes {
  const std::uint8_t* pixels = nullptr;
  int channels = 0;
  int height = 0;
  int width = 0;
};

/// What `cut`, which is inside, shows of `image`, resized to `out` [channels, height, width].
/// Throws DataError for more than four channels. `image` and `out` lie apart.
void resize_cut(const Planes& image, const Cut& cut, int height, int width,
                std::span<std::uint8_t> out);

/// Varies an image [channels, height, width]. Throws DataError for random-resized-crop of more than
/// four channels. `image` and `out` lie apart.
void vary(std::span<const std::uint8_t> image, std::int64_t channels, std::int64_t height,
          std::int64_t width, const Variation& variation, std::span<std::uint8_t> out);

}  // namespace ringlet::data
