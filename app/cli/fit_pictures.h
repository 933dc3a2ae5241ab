// What nobody said of a new run on a folder of pictures follows from the folder.
#pragma once

#include <string>
#include <vector>

#include "app/cli/flags.h"
#include "comm/core/group.h"

namespace ringlet::app {

struct FittedFlags {
  RawFlags flags;
  std::vector<std::string> told{};    ///< what was chosen, and why, a line each
  std::vector<std::string> chosen{};  ///< the flags of that, without dashes: "batch-size"
};

/// `flags`, with what the pictures say where these leave it open, so that the run keeps it:
///
///   --split       where pictures are to be split
///   --image-size  by their shorter sides (train/recipe/picture_fit.h); with --init, of the model
///                 there
///   --model       by that size
///   --epochs, --batch-size, --lr, --augment, --label-smoothing
///                 by the number of pictures to train on, without --init
///   --epochs, --batch-size
///                 by the same number, with --init and --fine-tune
///
/// Under --verify, and with other data, nothing is. Throws DataError and Stopped.
FittedFlags fit_to_pictures(const RawFlags& flags);

/// The same in all processes of a group, of which the first looks at the folder.
FittedFlags fit_to_pictures(const RawFlags& flags, comm::Group& group);

}  // namespace ringlet::app
