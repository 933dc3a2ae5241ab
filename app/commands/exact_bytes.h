// What --exact promises is one run's bytes on any number of replicas. Unlike processors break that.
#pragma once

#include "comm/core/group.h"
#include "train/recipe/options.h"

namespace ringlet::app {

/// Warns the user, in the first process, where the processes of a run in exact mode compute
/// differently, or where the run goes on that others began. Collective over the processes. Throws
/// what Group::agree() does.
void warn_of_other_bytes(comm::Group& group, const train::TrainOptions& options);

}  // namespace ringlet::app
