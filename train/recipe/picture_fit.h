// Which size and model suit a folder of pictures, where nobody names them.
//
//   shorter sides, median   pictures to train on   pixels of a side   model
//   up to 64                any                    the median, >= 8   resnet20
//   larger                  any                    128                resnet18
//   256 and larger          5,000 and more         224                resnet18
//
// Small pictures show nothing more when they are made larger, and cost the square of it. 224 pixels
// cost three times what 128 do, so they are for sets of which many pictures show more in them.
#pragma once

#include <cstdint>
#include <string>

namespace ringlet::train {

struct PictureFit {
  int image_size = 0;
  std::string model{};
};

/// `median`: pixels of the shorter sides; `pictures`: how many are trained on.
PictureFit fit_to_pictures(int median, std::int64_t pictures);

/// The model for pictures of `image_size` pixels a side.
std::string model_for(int image_size);

/// The size that suits weights which others have trained on ImageNet; small pictures stay so.
int size_for_weights(int median);

}  // namespace ringlet::train
