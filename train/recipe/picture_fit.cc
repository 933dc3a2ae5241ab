#include "train/recipe/picture_fit.h"

#include <algorithm>

#include "data/picture_spec.h"

namespace ringlet::train {

namespace {

constexpr int kSmall = 64, kLeast = 8;  // pixels of a side
constexpr int kUsual = 128;
constexpr int kLarge = 256;           // from which 224 show more
constexpr std::int64_t kMany = 5000;  // pictures, from which that is learnt

}  // namespace

std::string model_for(int image_size) { return image_size <= kSmall ? "resnet20" : "resnet18"; }

PictureFit fit_to_pictures(int median, std::int64_t pictures) {
  const bool detailed = median >= kLarge && pictures >= kMany;
  const int side = median <= kSmall ? std::max(median, kLeast)
                   : detailed       ? data::kUsualImageSize
                                    : kUsual;
  return {side, model_for(side)};
}

int size_for_weights(int median) {
  return median <= kSmall ? std::max(median, kLeast) : data::kUsualImageSize;
}

}  // namespace ringlet::train
