// The flags of a run: where and how a recipe is run.
#include "app/cli/flags.h"

#include <fmt/format.h>

#include "app/cli/checks.h"
#include "comm/transport/local/local_transport.h"
#include "data/loader.h"
#include "kernels/device.h"
#include "train/sync/transport_choice.h"

namespace ringlet::app {

namespace {

constexpr double kShortestTimeout = 0.01;  // seconds

}  // namespace

void add_replica_flags(CLI::App& app, RawFlags& flags) {
  train::Execution& execution = flags.options.execution;
  const char* group = "Replicas";
  auto* replicas =
      app.add_option("--replicas", flags.replicas, "copies of the model, each on its own thread")
          ->check(whole_number(1, comm::LocalGroup::kMostRanks))
          ->capture_default_str()
          ->group(group);
  auto* device = app.add_option("--device", flags.device,
                                "device of all replicas; cuda: a GPU for each, from cuda:0 on")
                     ->check(device_name())
                     ->type_name("DEVICE")
                     ->capture_default_str()
                     ->group(group);
  app.add_option("--devices", flags.devices,
                 "a device for each, in place of --replicas and --device")
      ->delimiter(',')
      ->check(device_name())
      ->type_name("cpu:0,cpu:0,...")
      ->excludes(device)
      ->excludes(replicas)
      ->group(group);
  app.add_option("--threads", execution.threads, "CPU threads of each replica")
      ->check(whole_number(1, DeviceOptions::kMostThreads))
      ->capture_default_str()
      ->group(group);
  app.add_option(
         "--workers", execution.workers,
         "threads of each replica that read and decode images; 0: in the step itself [1; on "
         "GPUs up to 8]")
      ->check(whole_number(0, data::LoaderOptions::kMostWorkers))
      ->group(group);
  app.add_option("--layout", flags.layout,
                 "of images in memory; auto takes the faster one: lanes on CPUs, nhwc on GPUs with "
                 "--precision tf32, bf16 or f16, else nchw")
      ->check(one_of({"auto", "nchw", "lanes", "nhwc"}))
      ->type_name("auto|nchw|lanes|nhwc")
      ->capture_default_str()
      ->group(group);
  app.add_option("--comm-timeout", execution.comm_timeout,
                 "seconds that a replica waits for another before it names it and stops")
      ->check(number(kShortestTimeout))
      ->capture_default_str()
      ->group(group);
}

void add_gpu_flags(CLI::App& app, RawFlags& flags) {
  train::Execution& execution = flags.options.execution;
  const char* group = "GPUs";
  app.add_flag("--tf32", execution.tf32,
               "multiply f32 on tensor cores, with factors rounded to 10 bits: --precision tf32")
      ->group(group);
  app.add_flag("--deterministic", execution.deterministic,
               "use only kernels that give the same bits in every run")
      ->group(group);
  app.add_flag("--autotune", execution.autotune,
               "time the library's kernels for each shape and take the fastest")
      ->group(group);
  app.add_option("--graph", flags.graph,
                 "with one replica, or over NCCL with one in each process: launch a whole step at "
                 "once, as a CUDA graph")
      ->check(one_of({"on", "off"}))
      ->type_name("on|off")
      ->capture_default_str()
      ->group(group);
}

void add_process_flag(CLI::App& app, RawFlags& flags) {
  constexpr int kMost = 256;
  const CLI::Validator number = whole_number(1, kMost);
  app.add_option_function<std::string>(
         "--processes",
         [&flags](const std::string& count) {
           flags.in_processes = true;
           if (!count.empty()) flags.processes = std::stoi(count);
         },
         "start N processes, each with these replicas; without N: be one of those that torchrun, "
         "mpirun or srun started, or that RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT name")
      ->expected(0, 1)
      ->check(CLI::Validator(
          [number](std::string& text) -> std::string { return text.empty() ? "" : number(text); },
          ""))
      ->type_name("[N]")
      ->group("Replicas");
}

void add_sync_flags(CLI::App& app, RawFlags& flags) {
  train::Execution& execution = flags.options.execution;
  const char* group = "Synchronisation";
  std::vector<std::string> strategies;
  for (const auto name : execution.strategies.names()) strategies.emplace_back(name);
  app.add_option("--sync", flags.sync, "how gradients are summed [auto; doubling with --exact]")
      ->check(one_of(strategies))
      ->type_name(fmt::format("{}", fmt::join(strategies, "|")))
      ->group(group);
  app.add_option(
         "--transport", flags.transport,
         "how data go between replicas: local copies between threads, memory that processes "
         "share (shm) or Gloo between processes, NCCL with a GPU each; auto takes NCCL "
         "where it can be had")
      ->check(one_of(train::transport_names()))
      ->type_name(fmt::format("{}", fmt::join(train::transport_names(), "|")))
      ->capture_default_str()
      ->group(group);
  app.add_option(
         "--bucket-kb", execution.bucket_kb,
         "KiB of gradients that are summed at once; 0: each parameter by itself [1024; between "
         "machines an eighth of all, 64 to 1024; on GPUs 25600]")
      ->check(whole_number(0))
      ->group(group);
  app.add_option(
         "--first-bucket-kb", execution.first_bucket_kb,
         "the same for the first bucket, so that it can start earlier [--bucket-kb; on GPUs 1024 "
         "where that is not given]")
      ->check(whole_number(0))
      ->group(group);
  app.add_option(
         "--overlap", flags.overlap,
         "sum while backward goes on; auto: on GPUs, and where processors are left over for it")
      ->check(one_of({"auto", "on", "off"}))
      ->type_name("auto|on|off")
      ->capture_default_str()
      ->group(group);
  app.add_option("--check-replicas", execution.check_replicas,
                 "compare the replicas, by a hash of each, every N steps as well; 0: never [after "
                 "step 1, at each epoch's end, before a save]")
      ->check(whole_number(0))
      ->group(group);
}

}  // namespace ringlet::app
