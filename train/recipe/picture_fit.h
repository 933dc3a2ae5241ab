// Which size, model and recipe suit a folder of pictures, where nobody names them.
//
//   shorter sides, median   pictures to train on   pixels of a side   model
//   up to 64                any                    the median, >= 8   resnet20
//   larger                  any                    128                resnet18
//   256 and larger          5,000 and more         224                resnet18
//
// Small pictures show nothing more when they are made larger, and cost the square of it. 224 pixels
// cost three times what 128 do, so they are for sets of which many pictures show more in them.
//
//   pictures to train on   epochs of resnet18 to 50 and resnet20   a step
//   N < 10,000             50 cbrt(800 / N), from 15 to 100        32 pictures, lr 0.1
//   others                 the same                                the model's own
//
// and --augment crop-flip and --label-smoothing 0.1 for all. docs/photographs.md has the figures.
#pragma once

#include <cstdint>
#include <string>

#include "train/recipe/option.h"

namespace ringlet::train {

struct PictureFit {
  int image_size = 0;
  std::string model{};
};

/// `median`: pixels of the shorter sides; `pictures`: how many are trained on.
PictureFit fit_to_pictures(int median, std::int64_t pictures);

/// The model for pictures of `image_size` pixels a side.
std::string model_for(int image_size);

/// What `given` leaves open of a recipe for a classifier that learns so many photographs from
/// scratch. Empty for models whose own recipe is for other data, and for margin losses. A step and
/// its rate belong together, and to SGD: who gives one of them gets the model's own of the other.
GivenOptions usual_for_pictures(const std::string& model, const GivenOptions& given,
                                std::int64_t pictures);

/// "--epochs 50 --batch-size 32": what such a choice is as flags.
std::string in_words(const GivenOptions& chosen);

/// The same for a model that begins with weights of other data (--fine-tune), of any model. A run
/// on few pictures has no use for steps that are as large as all of them:
///
///   pictures to train on   a step                  epochs
///   N < 10,000             N / 20, from 8 to 32    10, or so many that they have 200 steps, 50 at
///                                                  most
///   others                 the model's own         10
GivenOptions usual_for_fine_tuning(const GivenOptions& given, std::int64_t pictures);

/// The size that suits weights which others have trained on ImageNet; small pictures stay so.
int size_for_weights(int median);

}  // namespace ringlet::train
