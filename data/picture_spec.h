// What a folder of photographs makes of each of them, before they are augmented and normalised.
#pragma once

namespace ringlet::data {

/// Pixels of a side of the photographs in a folder, where nobody says otherwise.
inline constexpr int kUsualImageSize = 224;
/// The most that options may ask for.
inline constexpr int kLargestImageSize = 4096;

/// The share of a folder's pictures that is tested on, where nobody says otherwise.
inline constexpr double kUsualSplit = 0.2;

struct PictureSpec {
  int image_size = 0;  ///< pixels of a side that a model sees; 0: kUsualImageSize
  bool exif = true;    ///< turn JPEGs as their Exif orientation says; Pillow does not
  int crop_from = 0;   ///< see ImageFolderOptions
  double split = 0;    ///< the same

  bool operator==(const PictureSpec&) const = default;
};

}  // namespace ringlet::data
