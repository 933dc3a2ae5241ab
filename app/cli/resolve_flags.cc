// How the flags, a model's default recipe and a resumed run's become TrainOptions, and back.
#include <fmt/format.h>

#include <algorithm>

#include "app/cli/checks.h"
#include "app/cli/error_exit.h"
#include "app/cli/flags.h"
#include "app/cli/stage_devices.h"
#include "app/cli/usage.h"
#include "base/one_line.h"
#include "base/processors.h"
#include "comm/all_reduce/auto.h"
#include "comm/processes/launch.h"
#include "kernels/cuda_devices.h"
#include "train/forecast/forecast.h"
#include "train/optimizers/optimizer.h"
#include "train/recipe/recipe_options.h"
#include "train/recipe/stage_count.h"
#include "train/setup/fine_tuning.h"
#include "train/setup/run_options.h"
#include "train/sync/transport_choice.h"

namespace ringlet::app {

namespace {

int stages_of(const RawFlags& flags) {
  return checked([&] { return train::stages_in(flags.options.execution.stages); });
}

/// Refuses devices that are said twice, or that no process can take its share of.
void check_stage_devices(const RawFlags& flags) {
  if (devices_in_stages(flags.options.execution.stages).empty()) return;
  for (const char* key : {"device", "replicas"}) {
    if (!flags.given.contains(key) && flags.devices.empty()) continue;
    throw UsageError("--stages names devices, and so does --device; leave one of them out");
  }
  if (!flags.in_processes) return;
  throw UsageError(
      "--stages names devices, which are those of one process; leave them out with --processes");
}

int processes_of(const RawFlags& flags);

/// Ranks of this process. Without stages each process has all of --replicas; the ranks of a model
/// in stages are dealt out to the processes.
int ranks_here(const RawFlags& flags) {
  const int stages = stages_of(flags);
  if (stages == 1) return flags.replicas;
  const int ranks = stages * flags.replicas, processes = processes_of(flags);
  if (ranks % processes == 0) return ranks / processes;
  throw UsageError(fmt::format(
      "--processes: {} processes cannot have equally many of {} ranks, {} stages of {} replicas "
      "each; take a number that divides them",
      processes, ranks, stages, flags.replicas));
}

/// The first GPU of this process.
int first_gpu(const RawFlags& flags) {
  if (!flags.in_processes) return 0;
  const auto position = checked([] { return comm::position_from_environment(); });
  return position ? comm::first_device(*position, ranks_here(flags), cuda_device_count()) : 0;
}

/// Number of processes of the run; under a launcher, the launcher's number.
int processes_of(const RawFlags& flags) {
  if (!flags.in_processes) return 1;
  if (flags.processes) return *flags.processes;
  const auto position = checked([] { return comm::position_from_environment(); });
  return position ? position->processes : 1;
}

/// Whether collectives beside backward have a processor to run on. On a GPU they always have. On
/// processors they have where the replicas leave one idle; where they do not, a thread for the
/// collectives would only take turns with the one that computes. Between machines it mostly waits
/// for the network, and needs none.
bool has_room_to_overlap(const RawFlags& flags, const train::Execution& execution) {
  const bool on_gpus = execution.devices.front().kind == DeviceKind::cuda;
  if (on_gpus && !train::mixes_kinds(execution)) return true;
  if (flags.in_processes && !flags.processes) {
    const auto position = checked([] { return comm::position_from_environment(); });
    if (position && position->hub) return true;
  }
  const auto busy =
      static_cast<std::size_t>(processes_of(flags) * execution.threads) * execution.devices.size();
  return busy < static_cast<std::size_t>(usable_processors());
}

/// The devices, where the first of those that --device cuda leaves open is `first_gpu()`.
template <class FirstGpu>
std::vector<DeviceId> devices_from(const RawFlags& flags, FirstGpu first_gpu) {
  std::vector<DeviceId> devices;
  for (const std::string& name : flags.devices) devices.push_back(DeviceId::parse(name));
  if (!devices.empty()) return devices;
  devices = devices_in_stages(flags.options.execution.stages);
  if (!devices.empty()) return devices;
  const DeviceId device = DeviceId::parse(flags.device);
  devices.assign(static_cast<std::size_t>(ranks_here(flags)), device);
  if (flags.device == "cuda") {  // without a number: one replica on each GPU
    int next = first_gpu();
    for (DeviceId& gpu : devices) gpu.index = next++;
  }
  return devices;
}

/// Throws UsageError for what says how stages go where there are none.
void require_stages(const RawFlags& flags) {
  if (stages_of(flags) > 1) return;
  for (const char* key : {"pipeline", "balance"}) {
    const auto& row = train::run_options().at(key);
    const train::OptionValue value = row.get(flags.options);
    if (value == row.get({})) continue;
    throw UsageError(row.said(value) +
                     ": is for a model in several stages; leave it out, or add --stages 2");
  }
}

train::TrainOptions with_recipe(const RawFlags& flags, const train::Recipe& recipe) {
  require_stages(flags);
  train::TrainOptions options = flags.options;
  options.recipe = recipe;
  options.files.replace_head |= options.files.fine_tune;
  train::Execution& execution = options.execution;
  // Before CUDA is asked for anything.
  const std::vector<DeviceId> devices = devices_from(flags, [] { return 0; });
  if (train::may_meet_over_nccl(execution.transport, devices)) load_cuda_kernels_eagerly();
  execution.devices = devices_of(flags);
  execution.in_processes = flags.in_processes && flags.processes != 1;
  execution.overlap = flags.overlap ? *flags.overlap : has_room_to_overlap(flags, execution);
  execution.tf32 = recipe.precision == train::Precision::tf32;
  execution.on_hang = end_despite_running_threads;
  if (execution.sync.empty()) {
    execution.sync = recipe.exact
                         ? comm::Strategies().first_with(&comm::Strategy::adds_as_shard_tree)
                         : comm::AutoAllReduce::kName;
  }
  execution.any_transport = execution.transport == train::TransportChoice::automatic;
  execution.transport = checked([&] { return train::choose_transport(execution); });
  return options;
}

/// A run notes its recipe as JSON, which is UTF-8; the name of a folder or file need not be.
void require_utf8(const char* flag, const char* of, const std::string& name) {
  if (is_utf8(name)) return;
  throw UsageError(fmt::format(
      "{}: the {} name is not UTF-8, as a run's notes have to be; rename it", flag, of));
}

/// Lets --tf32 say "precision" in what was given.
train::GivenOptions with_tf32(const RawFlags& flags) {
  train::GivenOptions given = flags.recipe;
  if (!flags.options.execution.tf32) return given;
  const std::string tf32 = name_of(train::Precision::tf32);
  const std::string said = given_or(flags, "precision", tf32);
  if (said != tf32) {
    throw UsageError("--tf32 is --precision tf32, which contradicts --precision " + said +
                     "; leave one of them out");
  }
  given["precision"] = tf32;
  return given;
}

}  // namespace

std::vector<DeviceId> devices_of(const RawFlags& flags) {
  return devices_from(flags, [&] { return first_gpu(flags); });
}

FlagValues values_of(const train::TrainOptions& options) {
  FlagValues values{{"synthetic-train", fmt::format("{}", options.synthetic_train)},
                    {"synthetic-test", fmt::format("{}", options.synthetic_test)},
                    {"skip-broken", options.skip_broken ? "true" : "false"}};
  const auto& table = train::recipe_options();
  for (const auto& row : table.rows()) {
    const train::OptionValue value = row.get(options.recipe);
    std::string text = train::text_of(value);
    if (row.leaves_open(value) || text.empty()) continue;  // whatever the data have, or nothing
    if (row.is_switch() && row.form == train::Switch::off) {
      text = std::get<bool>(value) ? "false" : "true";
    }
    if (row.off_key != nullptr && !std::get<bool>(table.get(options.recipe, row.off_key))) {
      text = row.off_word;
    }
    values[row.flag_name().substr(2)] = text;
  }
  return values;
}

namespace {

/// Of a model in stages, where nobody says how many there are, in a step of so many samples.
int micro_batches_of(const RawFlags& flags, const train::Recipe& recipe, std::int64_t samples) {
  const int stages = stages_of(flags);
  const auto devices = std::ssize(devices_of(flags)) * processes_of(flags);
  constexpr int kShards = 8;  // of exact mode
  const std::int64_t parts = !recipe.exact       ? std::max<std::int64_t>(1, devices / stages)
                             : recipe.shards > 0 ? recipe.shards
                                                 : kShards;
  const DeviceKind kind = devices_of(flags).front().kind;
  return train::usual_micro_batches(stages, std::max<std::int64_t>(1, samples / parts), kind);
}

bool chooses_micro_batches(const RawFlags& flags) {
  return stages_of(flags) > 1 && !flags.recipe.contains("accumulate");
}

}  // namespace

train::TrainOptions resolve(const RawFlags& flags) {
  check_stage_devices(flags);
  train::Recipe recipe = train::default_recipe(flags.model);
  train::GivenOptions given = with_tf32(flags);
  if (leaves_precision_open(flags)) given.erase("precision");  // no value of the table's
  checked([&] {
    train::choose_optimizer(recipe, given_or(flags, "optimizer", recipe.optimizer));
    const train::Files& files = flags.options.files;
    if (files.fine_tune) train::set_fine_tuning(recipe, given, files.init);
    train::recipe_options().set(recipe, given);
  });
  if (leaves_precision_open(flags)) recipe.precision = train::Precision::automatic;
  if (chooses_micro_batches(flags)) {
    recipe.accumulate = micro_batches_of(flags, recipe, recipe.batch_size);
  }
  require_utf8("--data", "folder's", recipe.data);
  require_utf8("--verify", "file's", recipe.verify);
  return with_recipe(flags, recipe);
}

void fit_micro_batches(const RawFlags& flags, train::TrainOptions& options, std::int64_t samples) {
  train::Recipe& recipe = options.recipe;
  if (!chooses_micro_batches(flags) || samples >= recipe.batch_size) return;
  recipe.accumulate = micro_batches_of(flags, recipe, samples);
}

train::TrainOptions resolve(const RawFlags& flags, const train::Recipe& saved,
                            const std::optional<train::ModelInfo>& model) {
  train::Recipe goes_on = saved;
  std::vector<std::string> contradictions;
  for (const auto& [key, value] : with_tf32(flags)) {
    const auto& row = train::recipe_options().at(key);
    const train::OptionValue own = row.get(saved);
    const bool goes_by_run = key == "precision" && leaves_precision_open(flags);  // what it took
    if (own == value || goes_by_run) continue;
    if (row.may_become != nullptr && row.may_become(own, value)) {
      row.set(goes_on, value);
    } else {
      contradictions.push_back(row.said(value) + " (the run has " + row.said(own) + ")");
    }
  }
  if (model && says_sizes(*model)) {
    for (const auto& [key, of_run] : {std::pair{"synthetic_train", model->train_samples},
                                      std::pair{"synthetic_test", model->test_samples}}) {
      const auto& row = train::run_options().at(key);
      const train::OptionValue now = row.get(flags.options);
      if (flags.given.count(key) == 0 || now == train::OptionValue(of_run)) continue;
      contradictions.push_back(fmt::format("{} (the run has {})", row.said(now), of_run));
    }
  }
  if (!contradictions.empty()) {
    throw UsageError(
        fmt::format("--resume goes on with the run's own recipe, which contradicts {}; leave that "
                    "out, or start anew with --init MODEL",
                    fmt::join(contradictions, ", ")));
  }
  require_utf8("--verify", "file's", goes_on.verify);
  return with_recipe(flags, goes_on);
}

}  // namespace ringlet::app
