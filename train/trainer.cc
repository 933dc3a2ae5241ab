#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "base/stop_request.h"
#include "comm/mesh.h"
#include "comm/transport/nccl/nccl_transport.h"
#include "kernels/cuda_devices.h"
#include "train/files/centres.h"
#include "train/files/load_model.h"
#include "train/loop/broadcast_model.h"
#include "train/loop/on_rank_0.h"
#include "train/loop/replica_watch.h"
#include "train/recipe/precision_support.h"
#include "train/reports/failure.h"
#include "train/setup/stages_setup.h"
#include "train/sync/transport_choice.h"
#include "train/sync/tuning.h"
#include "train/telemetry/metrics.h"
#include "train/telemetry/tensorboard/event_writer.h"

namespace ringlet::train {

namespace {

/// Refuses an execution that was meant for another group.
void require_meant_for(const comm::Group& group, const Execution& execution) {
  const char* what = "run_replicas";
  require(execution.transport != TransportChoice::automatic, what,
          "the transport of a group's ranks is decided before");
  require(static_cast<int>(execution.devices.size()) == group.replicas(), what,
          "there is a device for each of the group's ranks");
  if (group.processes() == 1) return;
  require(execution.in_processes, what, "Execution::in_processes says that there are several");
  require(execution.transport != TransportChoice::local, what,
          "the transport `local` joins the ranks of one process");
}

/// Whether each device reads and writes the memory of all others.
bool reach_each_other(const std::vector<DeviceId>& devices) {
  const auto reaches = [](DeviceId device, DeviceId other) {
    if (device == other) return true;
    return device.kind == DeviceKind::cuda && other.kind == DeviceKind::cuda &&
           cuda_reaches(device.index, other.index);
  };
  return std::all_of(devices.begin(), devices.end(), [&](DeviceId device) {
    return std::all_of(devices.begin(), devices.end(),
                       [&](DeviceId other) { return reaches(device, other); });
  });
}

/// One stage: the replicas are the world.
std::vector<comm::MeshAxis> axes_of(int stages, int replicas) {
  if (stages == 1) return {};
  return {{kStageAxis, stages}, {comm::kDataAxis, replicas}};
}

template <class Writer>
bool has(std::span<RunListener* const> listeners) {
  return std::ranges::any_of(listeners, [](RunListener* listener) {
    return dynamic_cast<const Writer*>(listener) != nullptr;
  });
}

/// Throws ContractError for files that are asked for, and that nobody would write.
void require_writers(const Files& files, std::span<RunListener* const> listeners,
                     const TraceWriter* trace) {
  const char* remedy = "is written by RunFiles, whose listeners() train() is to be given";
  require(files.metrics.empty() || has<MetricsWriter>(listeners), "Files::metrics", remedy);
  require(files.tensorboard.empty() || has<tensorboard::EventWriter>(listeners),
          "Files::tensorboard", remedy);
  require(files.trace.empty() || trace != nullptr, "Files::trace",
          "is written by a TraceWriter that train() is given: by its write(), behind the run");
}

}  // namespace

comm::LocalGroup threads_of(const Execution& execution) {
  require(!execution.in_processes, "threads_of", "ranks of several processes have a ProcessGroup");
  comm::LocalGroupOptions options{.in_reach = reach_each_other(execution.devices)};
  if (mixes_kinds(execution)) {
    for (const DeviceId& device : execution.devices) options.kinds.push_back(device.kind);
  }
  return comm::LocalGroup(static_cast<int>(execution.devices.size()), options);
}

void run_replicas(const Execution& execution, const ReplicaBody& body, TraceWriter* trace) {
  comm::LocalGroup group = threads_of(execution);
  run_replicas(group, decided(execution), body, trace);
}

void run_replicas(comm::Group& group, const Execution& execution, const ReplicaBody& body,
                  TraceWriter* trace) {
  require(body != nullptr, "run_replicas", "the function that each replica runs is empty");
  const auto on_replicas = [&body](Device& device, const Ranks& ranks) {
    body(device, ranks.replicas);
  };
  run_ranks(group, execution, on_replicas, trace);
}

void run_ranks(const Execution& execution, const RankBody& body, TraceWriter* trace) {
  comm::LocalGroup group = threads_of(execution);
  run_ranks(group, decided(execution), body, trace);
}

void run_ranks(comm::Group& group, const Execution& execution, const RankBody& body,
               TraceWriter* trace) {
  require_meant_for(group, execution);
  require(body != nullptr, "run_ranks", "the function that each rank runs is empty");
  const int first = group.first_rank();
  const auto nccl = execution.transport == TransportChoice::nccl ? comm::open_nccl() : nullptr;
  const comm::CommunicatorOptions options{execution.sync, execution.comm_timeout,
                                          execution.strategies, table_of_world(group, execution)};
  const int stages = stages_in(execution.stages);
  const comm::MeshGroup grid(group, axes_of(stages, replicas_in(group.size(), execution)));
  ReplicaWatch watch(execution, group);
  const auto run_rank = [&](int rank) {
    try {
      const auto device = open_device(execution.devices[static_cast<std::size_t>(rank - first)],
                                      {.threads = execution.threads,
                                       .overlap = execution.overlap,
                                       .bf16 = bf16_products(execution.emulate_precision),
                                       .tf32 = execution.tf32,
                                       .deterministic = execution.deterministic,
                                       .autotune = execution.autotune});
      const TraceWriter::Recording recording(trace, rank, *device);
      comm::Transport& host = group.transport(rank);
      host.set_timeout(execution.comm_timeout);
      const bool wants_captures = execution.graph && group.replicas() == 1;
      const auto over_nccl =
          nccl ? nccl->join(host, device->communication(), wants_captures) : nullptr;
      try {
        comm::Mesh mesh(grid, rank, options,
                        [&](std::string_view, comm::Transport& of_host) -> comm::Transport& {
                          return over_nccl ? *over_nccl : of_host;
                        });
        body(*device, stages > 1 ? ranks_of(mesh) : ranks_of(mesh.world()));
        // A learner's end may have failed, which no destructor tells.
        if (const auto cause = host.root_cause();
            cause && cause->rank == rank && group.size() > 1) {
          throw comm::CommError(cause->message);
        }
      } catch (...) {  // NCCL's end waits for all ranks, unless it hears that one has failed
        watch.failed(rank, std::current_exception());
        host.abort(message_of_current_exception());
        throw;
      }
    } catch (...) {
      watch.failed(rank, std::current_exception());
      group.abort(rank, message_of_current_exception());
    }
    group.transport(rank).recorder().set_activity(comm::kAtItsEnd);  // who waits for it hears so
    watch.ended(rank);
  };
  std::vector<std::thread> threads;
  for (int rank = first; group.holds(rank); ++rank) {  // of a run before this one
    comm::FlightRecorder& recorder = group.transport(rank).recorder();
    if (recorder.activity().what == comm::kAtItsEnd) recorder.set_activity(nullptr);
  }
  for (int rank = first; group.holds(rank); ++rank) {
    watch.started(rank);
    try {
      threads.emplace_back(run_rank, rank);
    } catch (const std::system_error&) {  // those that run already must not wait for the rest
      watch.failed(rank, std::current_exception());
      group.abort(rank, message_of_current_exception());
      watch.ended(rank);
      break;
    }
  }
  watch.wait();
  for (std::thread& thread : threads) thread.join();
  watch.rethrow();
}

void name_ranks(comm::Group& group, const RunSetup& setup) {
  if (!setup.stages) return;
  group.name_ranks(
      [stages = setup.stages, replicas = setup.replicas](const std::vector<int>& ranks) {
        return name_of_ranks(*stages, ranks, replicas);
      });
}

RunResult train(const RunSetup& setup, std::span<RunListener* const> listeners,
                TraceWriter* trace) {
  comm::LocalGroup group = threads_of(setup.options.execution);
  return train(group, setup, listeners, trace);
}

RunResult train(comm::Group& group, const RunSetup& setup, std::span<RunListener* const> listeners,
                TraceWriter* trace) {
  require_trainable(setup);
  if (const int ranks = setup.replicas * stages_in(setup.options.execution.stages);
      ranks != group.size()) {
    throw ContractError(fmt::format(
        "train: the setup is for {} ranks, and there are {}; give make_run_setup() as many as "
        "there are devices",
        ranks, group.size()));
  }
  RunResult result;
  const auto body = [&](Device& device, const Ranks& ranks) {
    const bool tells = ranks.world.rank() == 0;
    if (tells) require_writers(setup.options.files, listeners, trace);
    TrainLoop loop(setup, device, ranks, tells ? listeners : std::span<RunListener* const>());
    const RunResult mine = loop.run();
    if (ranks.world.world().local_rank == 0) result = mine;
  };
  name_ranks(group, setup);
  run_ranks(group, setup.options.execution, body, trace);
  return result;
}

Evaluation evaluate(const RunSetup& setup, const std::filesystem::path& model,
                    NonFinite nonfinite) {
  comm::LocalGroup group = threads_of(setup.options.execution);
  return evaluate(group, setup, model, nonfinite);
}

Evaluation evaluate(comm::Group& group, const RunSetup& setup, const std::filesystem::path& model,
                    NonFinite nonfinite) {
  std::optional<Evaluation> result;
  const auto body = [&](Device& device, comm::Communicator& communicator) {
    communicator.require_equal(device.communication(),
                               {{"test data", setup.data.test->contents()}});
    Replica replica(device, setup.replica);
    nn::Parameters& parameters = replica.parameters();
    on_rank_0(communicator, device, "weights", [&] {
      require_task(model, replica.task().name());
      const nn::Registry& registry = parameters.registry();
      upload(device,
             has_centres(registry)
                 ? load_with_centres(model, centres_file_of(setup.options.files.init_centres),
                                     registry, setup.data.train->target_names(), nonfinite)
                 : load_model(model, registry, Head::as_in_file, nonfinite),
             parameters, {});
    });
    broadcast_model(device, communicator, parameters);
    Evaluator evaluator(replica, communicator, setup.data.test, setup.loader,
                        setup.evaluation_batch);
    const Tested tested = evaluator.run(setup.stop_requested);
    if (tested.failure) std::rethrow_exception(tested.failure);
    if (tested.failed) communicator.barrier(device.communication(), "evaluation's end");
    if (communicator.world().local_rank == 0) result = tested.result;
  };
  run_replicas(group, setup.options.execution, body);
  if (!result) throw Stopped();
  return *result;
}

}  // namespace ringlet::train
