// The replicas of this process as threads: started together, ended together, one error shown. They
// are the whole world, or a part of the world of several processes (comm/core/group.h).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "comm/core/group.h"
#include "comm/transport/local/local_transport.h"
#include "kernels/device.h"
#include "train/files/load_model.h"
#include "train/loop/ranks.h"
#include "train/loop/train_loop.h"
#include "train/recipe/options.h"
#include "train/reports/reports.h"
#include "train/setup/run_setup.h"
#include "train/telemetry/trace_writer.h"

namespace ringlet::train {

/// What one replica's thread runs.
using ReplicaBody = std::function<void(Device& device, comm::Communicator& communicator)>;

/// The group of replicas that are the world: a rank for each device. Throws ContractError where
/// `execution` is of several processes.
comm::LocalGroup threads_of(const Execution& execution);

/// Opens one device a replica, runs `body` on a thread for each, and joins them. The first failure
/// ends all, in all processes; it is thrown with the replica's name in front, or as Aborted if it
/// was another process's. A replica that never ends can only be told to Execution::on_hang; without
/// that it is waited for. `trace` may be null. The replicas are the world.
void run_replicas(const Execution& execution, const ReplicaBody& body,
                  TraceWriter* trace = nullptr);
/// The same with the ranks of `group`, one a device. `execution` leaves nothing open: decided(). It
/// throws ContractError where the two do not fit each other.
void run_replicas(comm::Group& group, const Execution& execution, const ReplicaBody& body,
                  TraceWriter* trace = nullptr);

/// What one rank's thread runs, where the model may be cut into stages (Execution::stages).
using RankBody = std::function<void(Device& device, const Ranks& ranks)>;
/// As run_replicas(), with the mesh of stages and replicas. Errors name a rank as the group does
/// (Group::name_ranks()), or else "replica 1 (cpu)".
void run_ranks(comm::Group& group, const Execution& execution, const RankBody& body,
               TraceWriter* trace = nullptr);
/// The same with threads_of(execution), which are the world.
void run_ranks(const Execution& execution, const RankBody& body, TraceWriter* trace = nullptr);
/// What messages of the run call the group's ranks: train() does it.
void name_ranks(comm::Group& group, const RunSetup& setup);

/// A whole training run. `listeners` are told by rank 0, in its process; those of RunFiles write
/// its metrics. Claims Files::out, which must be there, until it ends, and throws FileError where
/// another run has it, or has left its state or model there (Files::force). The others as above.
RunResult train(const RunSetup& setup, std::span<RunListener* const> listeners,
                TraceWriter* trace = nullptr);
RunResult train(comm::Group& group, const RunSetup& setup, std::span<RunListener* const> listeners,
                TraceWriter* trace = nullptr);

/// Evaluates a model's weights file on the test data. Throws Stopped where
/// RunSetup::stop_requested says so meanwhile.
Evaluation evaluate(const RunSetup& setup, const std::filesystem::path& model,
                    NonFinite nonfinite = NonFinite::refused);
Evaluation evaluate(comm::Group& group, const RunSetup& setup, const std::filesystem::path& model,
                    NonFinite nonfinite = NonFinite::refused);

}  // namespace ringlet::train
