// A model's numbers from rank 0, the only rank that reads files.
#pragma once

#include "comm/communicator.h"
#include "kernels/device.h"
#include "nn/parameters.h"

namespace ringlet::train {

/// Copies parameters, buffers and counters from rank 0 to all, and waits for that. Rows that are
/// cut over ranks are passed over. Collective.
void broadcast_model(Device& device, comm::Communicator& communicator,
                     const nn::Parameters& parameters);

}  // namespace ringlet::train
