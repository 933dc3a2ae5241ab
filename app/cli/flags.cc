// The flags of a run: where and how a recipe is run, and its files. Each comes from its row in
// run_flags(), but for those that no row can say.
#include "app/cli/flags.h"

#include "app/cli/checks.h"
#include "app/cli/option_flags.h"
#include "comm/transport/local/local_transport.h"
#include "train/setup/run_options.h"

namespace ringlet::app {

namespace {

/// What resolve() makes something else of, and what the program has beyond the library.
std::vector<train::Option<RawFlags>> own_rows() {
  return {train::option("replicas", &RawFlags::replicas,
                        {.help = "copies of the model, each on its own thread",
                         .range = train::from(1).to(comm::LocalGroup::kMostRanks)}),
          train::option("device", &RawFlags::device,
                        {.help = "device of all replicas; cuda: a GPU for each, from cuda:0 on",
                         .value_name = "DEVICE"}),
          train::choice_option("overlap", &RawFlags::overlap,
                               {{"auto", {}}, {"on", true}, {"off", false}},
                               {.help = "sum while backward goes on; auto: on GPUs, and where "
                                        "processors are left over for it"}),
          train::option("no_out", &RawFlags::no_out,
                        {.help = "keep nothing of the run: no model, no state, no metrics"}),
          train::option("cache", &RawFlags::cache,
                        {.help = "keep photographs as they are decoded and resized: in memory, or "
                                 "also in FILE.train and FILE.test, for devices that outrun "
                                 "decoding",
                         .value_name = "memory|FILE"})};
}

const train::OptionTable<RawFlags>& run_flags() {
  static const train::OptionTable<RawFlags> rows = [] {
    train::OptionTable<RawFlags> table;
    table.add(own_rows());
    table.add(train::options_in(&RawFlags::options, train::run_options().rows()));
    return table;
  }();
  return rows;
}

/// --replicas of a bench, which may be several numbers.
void add_replica_counts(CLI::App& app, RawFlags& flags, std::vector<int>& counts,
                        const char* group) {
  app.add_option_function<std::vector<int>>(
         "--replicas",
         [&](const std::vector<int>& given) {
           counts = given;
           flags.replicas = given.front();
           flags.given.insert("replicas");
         },
         "copies of the model, each on its own thread; several numbers are measured in turns, and "
         "compared")
      ->default_str("1")
      ->delimiter(',')
      ->transform(whole_number(1, comm::LocalGroup::kMostRanks))
      ->type_name("N,N,...")
      ->group(group);
}

}  // namespace

void add_run_flags(CLI::App& app, RawFlags& flags, const char* group,
                   std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const train::Option<RawFlags>& row = run_flags().at(key);
    const auto note = [&flags, &row](const train::OptionValue& value) {
      row.set(flags, value);
      flags.given.insert(row.key);
    };
    add_flag(app, row, row.get(flags), note)->group(group);
  }
}

void add_replica_flags(CLI::App& app, RawFlags& flags, std::vector<int>* counts) {
  const char* group = "Replicas";
  if (counts == nullptr) {
    add_run_flags(app, flags, group, {"replicas"});
  } else {
    add_replica_counts(app, flags, *counts, group);
  }
  add_run_flags(app, flags, group, {"device"});
  app.add_option("--devices", flags.devices,
                 "a device for each, in place of --replicas and --device")
      ->delimiter(',')
      ->check(device_name())
      ->type_name("cpu:0,cpu:0,...")
      ->excludes(app.get_option("--device")->check(device_name()))
      ->excludes("--replicas")
      ->group(group);
  add_run_flags(app, flags, group, {"threads", "workers", "layout", "comm_timeout"});
}

void add_stage_flags(CLI::App& app, RawFlags& flags) {
  add_run_flags(app, flags, "Stages", {"stages", "pipeline", "recompute", "balance"});
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

void add_gpu_flags(CLI::App& app, RawFlags& flags) {
  add_run_flags(app, flags, "GPUs", {"tf32", "deterministic", "autotune", "graph"});
}

void add_sync_flags(CLI::App& app, RawFlags& flags) {
  add_run_flags(
      app, flags, "Synchronisation",
      {"sync", "probe", "transport", "bucket_kb", "first_bucket_kb", "overlap", "check_replicas"});
}

}  // namespace ringlet::app
