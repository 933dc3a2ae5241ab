// What nobody said of a new run on a folder of pictures follows from the folder.
#pragma once

#include "app/cli/flags.h"

namespace ringlet::app {

/// `flags`, with what the folder says where they leave it open, so that the run keeps it: --split,
/// where pictures are to be split.
RawFlags fit_to_pictures(RawFlags flags);

}  // namespace ringlet::app
