#include "train/trainer.h"

#include <fmt/format.h>

#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "comm/errors.h"
#include "comm/local_transport.h"
#include "train/failure.h"
#include "train/state.h"

namespace ringlet::train {

namespace {

/// Keeps the failure that the user shall read: the first root cause, or else the first of all.
class FirstFailure {
 public:
  void note(int rank, const DeviceId& device, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    Failure& kept = is_secondary(error) ? secondary_ : root_;
    if (!kept.error) kept = {error, fmt::format("replica {} ({}): ", rank, device.to_string())};
  }
  /// Once no thread notes any more.
  void rethrow(bool name_replica) const {
    const Failure& shown = root_.error ? root_ : secondary_;
    if (!shown.error) return;
    const std::string name = name_replica ? shown.name : "";
    try {
      std::rethrow_exception(shown.error);
    } catch (const comm::CommError&) {
      throw;  // names the ranks itself
    } catch (const RunError&) {
      throw;
    } catch (const Error& error) {
      throw Error(name + error.what(), error.where());
    } catch (const std::exception& error) {
      throw Error(name + error.what());
    }
  }

 private:
  struct Failure {
    std::exception_ptr error;
    std::string name;  // of the replica
  };
  static bool is_secondary(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const comm::Aborted&) {
      return true;
    } catch (...) {
      return false;
    }
  }
  std::mutex mutex_;
  Failure root_, secondary_;
};

}  // namespace

void run_replicas(const Execution& execution, const ReplicaBody& body, TraceWriter* trace) {
  const int ranks = static_cast<int>(execution.devices.size());
  comm::LocalGroup group(ranks);
  FirstFailure failure;
  const auto run_rank = [&](int rank) {
    const DeviceId id = execution.devices[static_cast<std::size_t>(rank)];
    try {
      const auto device =
          open_device(id, {.threads = execution.threads, .overlap = execution.overlap});
      const TraceWriter::Recording recording(trace, rank, *device);
      comm::Communicator communicator(group.transport(rank),
                                      {execution.sync, execution.comm_timeout});
      body(*device, communicator);
    } catch (...) {
      failure.note(rank, id, std::current_exception());
      group.abort(rank, message_of_current_exception());
    }
  };
  std::vector<std::thread> threads;
  try {
    for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run_rank, rank);
  } catch (const std::system_error& error) {  // those that run already must not wait for the rest
    const int rank = static_cast<int>(threads.size());
    failure.note(rank, execution.devices[threads.size()], std::current_exception());
    group.abort(rank, error.what());
  }
  for (std::thread& thread : threads) thread.join();
  failure.rethrow(ranks > 1);
}

RunResult train(const RunSetup& setup, std::span<RunListener* const> listeners,
                TraceWriter* trace) {
  RunResult result;
  run_replicas(
      setup.options.execution,
      [&](Device& device, comm::Communicator& communicator) {
        const bool tells = communicator.rank() == 0;
        TrainLoop loop(setup, device, communicator,
                       tells ? listeners : std::span<RunListener* const>());
        const RunResult mine = loop.run();
        if (tells) result = mine;
      },
      trace);
  return result;
}

Evaluation evaluate(const RunSetup& setup, const std::filesystem::path& model) {
  Evaluation result;
  run_replicas(
      setup.options.execution,
      [&](Device& device, comm::Communicator& communicator) {
        Replica replica(device, setup.replica);
        const auto state = load_model(model, replica.parameters().registry());
        upload(device, state, replica.parameters(), {});
        Evaluator evaluator(replica, communicator, setup.data.test, setup.loader, kEvaluationBatch);
        const Evaluation mine = evaluator.run();
        if (communicator.rank() == 0) result = mine;
      },
      nullptr);
  return result;
}

}  // namespace ringlet::train
