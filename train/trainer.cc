#include "train/trainer.h"

#include <exception>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "comm/transport/local/local_transport.h"
#include "comm/transport/nccl/nccl_transport.h"
#include "train/failure.h"
#include "train/files/state.h"
#include "train/loop/replica_watch.h"
#include "train/sync/transport_choice.h"
#include "train/sync/tuning.h"

namespace ringlet::train {

namespace {

/// This process's ranks: the whole world, or a part of a world of several processes.
class RankGroup {
 public:
  RankGroup(int count, comm::ProcessGroup* processes) : processes_(processes) {
    if (processes_ == nullptr) own_.emplace(count);
  }
  int first_rank() const { return processes_ == nullptr ? 0 : processes_->first_rank(); }
  int world_size() const { return processes_ == nullptr ? own_->size() : processes_->size(); }
  comm::Transport& transport(int rank) {
    return processes_ == nullptr ? own_->transport(rank) : processes_->transport(rank);
  }
  void abort(int rank, const std::string& reason) noexcept {
    processes_ == nullptr ? own_->abort(rank, reason) : processes_->abort(rank, reason);
  }

 private:
  comm::ProcessGroup* processes_;
  std::optional<comm::LocalGroup> own_;
};

}  // namespace

void run_replicas(const Execution& execution, const ReplicaBody& body, TraceWriter* trace,
                  comm::ProcessGroup* processes) {
  const int replicas = static_cast<int>(execution.devices.size());
  RankGroup group(replicas, processes);
  const int first = group.first_rank();
  const TransportChoice transport = choose_transport(execution, processes != nullptr);
  const auto nccl = transport == TransportChoice::nccl ? comm::open_nccl() : nullptr;
  const comm::CommunicatorOptions options{execution.sync, execution.comm_timeout,
                                          execution.strategies,
                                          tuned_table(execution, name_of(transport))};
  ReplicaWatch watch(execution, first, group.world_size());
  const auto run_rank = [&](int rank) {
    try {
      const auto device = open_device(execution.devices[static_cast<std::size_t>(rank - first)],
                                      {.threads = execution.threads,
                                       .overlap = execution.overlap,
                                       .tf32 = execution.tf32,
                                       .deterministic = execution.deterministic,
                                       .autotune = execution.autotune});
      const TraceWriter::Recording recording(trace, rank, *device);
      comm::Transport& host = group.transport(rank);
      host.set_timeout(execution.comm_timeout);
      const auto over_nccl = nccl ? nccl->join(host, device->communication()) : nullptr;
      try {
        comm::Communicator communicator(over_nccl ? *over_nccl : host, options);
        body(*device, communicator);
      } catch (...) {  // NCCL's end waits for all ranks, unless it hears that one has failed
        host.abort(message_of_current_exception());
        throw;
      }
    } catch (...) {
      watch.failed(rank, std::current_exception());
      group.abort(rank, message_of_current_exception());
    }
    watch.ended(rank);
  };
  std::vector<std::thread> threads;
  for (int rank = first; rank < first + replicas; ++rank) {
    watch.started(rank);
    try {
      threads.emplace_back(run_rank, rank);
    } catch (const std::system_error& error) {  // those that run already must not wait for the rest
      watch.failed(rank, std::current_exception());
      group.abort(rank, error.what());
      watch.ended(rank);
      break;
    }
  }
  watch.wait();
  for (std::thread& thread : threads) thread.join();
  watch.rethrow();
}

RunResult train(const RunSetup& setup, std::span<RunListener* const> listeners, TraceWriter* trace,
                comm::ProcessGroup* processes) {
  RunResult result;
  run_replicas(
      setup.options.execution,
      [&](Device& device, comm::Communicator& communicator) {
        const bool tells = communicator.rank() == 0;
        TrainLoop loop(setup, device, communicator,
                       tells ? listeners : std::span<RunListener* const>());
        const RunResult mine = loop.run();
        if (communicator.world().local_rank == 0) result = mine;
      },
      trace, processes);
  return result;
}

Evaluation evaluate(const RunSetup& setup, const std::filesystem::path& model,
                    comm::ProcessGroup* processes) {
  Evaluation result;
  run_replicas(
      setup.options.execution,
      [&](Device& device, comm::Communicator& communicator) {
        Replica replica(device, setup.replica);
        const auto state = load_model(model, replica.parameters().registry());
        upload(device, state, replica.parameters(), {});
        Evaluator evaluator(replica, communicator, setup.data.test, setup.loader, kEvaluationBatch);
        const Evaluation mine = evaluator.run();
        if (communicator.world().local_rank == 0) result = mine;
      },
      nullptr, processes);
  return result;
}

}  // namespace ringlet::train
