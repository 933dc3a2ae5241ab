// The pictures of pairs as a model sees them, to be embedded: of each pair the first and the
// second, each as it is and, where that is wanted, mirrored:
//
//   sample    0       1                2        3                 4 ...
//   picture   first   first mirrored   second   second mirrored   of the next pair
//
// A picture of another size has its sides resized by one factor until the model's image is covered,
// which is then the middle: of a square, the shorter side becomes the model's. Grey is by Pillow's
// luma.
#pragma once

#include <memory>
#include <vector>

#include "data/dataset.h"
#include "data/pairs.h"

namespace ringlet::data {

struct PairImagesOptions {
  int channels = 3;  ///< 1 or 3
  int height = 112;
  int width = 112;
  bool exif = true;      ///< turn JPEGs as their Exif orientation says
  bool mirrored = true;  ///< each picture mirrored, too
};

class PairImages final : public Dataset {
 public:
  /// Of the pairs `chosen`, by their indices, in this order; at least one.
  PairImages(std::shared_ptr<const Pairs> pairs, std::vector<std::int64_t> chosen,
             const PairImagesOptions& options);

  void read(std::int64_t index, std::span<std::uint8_t> out) const override;
  /// The picture that a sample is of.
  std::string picture_name(std::int64_t index) const;

 private:
  std::int64_t picture_of(std::int64_t index) const;

  std::shared_ptr<const Pairs> pairs_;
  std::vector<std::int64_t> chosen_;
  PairImagesOptions options_;
};

/// Samples of a pair.
inline std::int64_t samples_of_pair(bool mirrored) { return mirrored ? 4 : 2; }

}  // namespace ringlet::data
