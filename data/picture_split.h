// Pictures of one folder, split into those that are trained on and those that are tested on.
//
// In each class the pictures with the smallest hashes of their bytes are tested on, as many as come
// nearest to the share. So a picture's side depends on neither names, nor order, nor --seed, and
// runs of different seeds test on the same pictures. Pictures that are alike
// (data/picture_print.h) lie on one side: those of several classes are trained on. Each class has
// at least one picture on each side.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/picture_print.h"

namespace ringlet::data {

struct PictureSplit {
  std::vector<std::int64_t> train, test;  ///< indices, ascending
  std::int64_t kept_together = 0;         ///< pictures that are like another one
};

/// `labels`: of each picture its class. `share`: of each class, above 0 and below 1. Throws
/// DataError, which names `folder` and the class, where a class has one picture, or where all of
/// its pictures are alike; `allow_unseen_targets`: these are trained on then.
PictureSplit split_pictures(const std::string& folder, const std::vector<std::string>& classes,
                            std::span<const std::int32_t> labels,
                            std::span<const PicturePrint> prints, double share,
                            bool allow_unseen_targets = false);

}  // namespace ringlet::data
