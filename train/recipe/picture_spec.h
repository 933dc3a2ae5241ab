// What becomes of an image before a model sees it.
#pragma once

#include <string>
#include <vector>

#include "data/picture_spec.h"
#include "train/recipe/option.h"

namespace ringlet::train {

struct PictureSpec : data::PictureSpec {
  bool normalize = true;  ///< subtract the training pixels' mean, divide by their deviation
  /// Whose: data's own, or those of imagenet or cifar-10. See normalizations().
  std::string normalize_by = "data";
  std::string augment = "none";  ///< see data/augment.h

  bool operator==(const PictureSpec&) const = default;
};

/// What PictureSpec::normalize_by may be.
std::vector<std::string> normalizations();

std::vector<Option<PictureSpec>> picture_options();

}  // namespace ringlet::train
