// The smallest image that a model's batch norm sees. Where that is one pixel, a batch of one sample
// has one value a channel, and so no variance to learn from.
#pragma once

#include <cstdint>

#include "nn/plan.h"

namespace ringlet::nn {

/// Its pixels, from a dry run as plan_training() makes it; 0 where no batch norm takes statistics.
std::int64_t smallest_normed(const Registry& registry, const BatchSpec& batch, const Pass& pass,
                             bool fuse = true);

}  // namespace ringlet::nn
