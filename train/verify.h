// Measures a model on pairs of pictures, on all ranks of a group.
//
//   embedding   the model's outputs for a picture, and for it mirrored, added up (Flip::sum); its
//               first pass alone (Flip::none)
//   XNorm       the mean length of the outputs, of both passes
//
// How the work is shared: train/verification/pairs_share.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "base/stop_request.h"
#include "comm/core/group.h"
#include "data/pairs.h"
#include "train/files/model_info.h"
#include "train/recipe/options.h"
#include "train/verification/pairs_share.h"
#include "train/verification/verified.h"

namespace ringlet::train {

struct VerifyOptions {
  Flip flip = Flip::sum;
  Precision precision = Precision::f32;
  StopRequest stop_requested{};  ///< asked once a pass, on each rank; then Stopped is thrown
  /// Told by rank 0's process how many of its pairs are done.
  std::function<void(std::int64_t done, std::int64_t total)> progress{};
};

/// Of each of `sets`. The model in `file`, which is there for every process, holds what `info`
/// says. `execution` leaves nothing open: decided(). Throws DataError for a picture that cannot be
/// read, FileError for the model and for embeddings that are not finite, and ContractError where
/// ranks have other pairs.
std::vector<Verified> verify(comm::Group& group, const Execution& execution,
                             const std::filesystem::path& file, const ModelInfo& info,
                             const std::vector<std::shared_ptr<const data::Pairs>>& sets,
                             const VerifyOptions& options = {});

}  // namespace ringlet::train
