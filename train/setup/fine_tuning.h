// --fine-tune: defaults for a model that begins with weights of other data. What is given wins.
//
//   lr              a tenth of the model's own (with AdamW: of AdamW's)
//   head_lr         ten times lr
//   epochs          10; more for few pictures (recipe/picture_fit.h), which get smaller batches
//   schedule        cosine, with a warm-up of a tenth of the epochs, one at most
//   normalize_by    imagenet, where the weights' last layer is for ImageNet's thousand classes
//
// The head is replaced where the data have other classes (Files::replace_head).
#pragma once

#include <filesystem>

#include "train/recipe/options.h"

namespace ringlet::train {

/// Sets them in `recipe`, the default of a model and an optimiser. `weights`: what --init names.
/// Throws FileError where that cannot be read.
void set_fine_tuning(Recipe& recipe, const GivenOptions& given,
                     const std::filesystem::path& weights);

}  // namespace ringlet::train
