// The replicas of this process as threads: started together, ended together, one error shown.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "kernels/device.h"
#include "train/options.h"
#include "train/reports.h"
#include "train/run_setup.h"
#include "train/trace_writer.h"
#include "train/train_loop.h"

namespace ringlet::train {

/// What one replica's thread runs.
using ReplicaBody = std::function<void(Device& device, comm::Communicator& communicator)>;

/// Opens one device a replica, runs `body` on a thread for each, and joins them. The first failure
/// ends all; it is thrown with the replica's name in front. A replica that never ends can only be
/// told to Execution::on_hang; without that it is waited for. `trace` may be null.
void run_replicas(const Execution& execution, const ReplicaBody& body, TraceWriter* trace);

/// A whole training run. `listeners` are told by rank 0. `trace` may be null.
RunResult train(const RunSetup& setup, std::span<RunListener* const> listeners, TraceWriter* trace);

/// Evaluates a model's weights file on the test data.
Evaluation evaluate(const RunSetup& setup, const std::filesystem::path& model);

}  // namespace ringlet::train
