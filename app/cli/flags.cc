#include "app/cli/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/cli/checks.h"
#include "app/cli/error_exit.h"
#include "app/cli/usage.h"
#include "comm/all_reduce/strategies.h"
#include "comm/processes/launch.h"
#include "kernels/cuda_devices.h"
#include "kernels/processors.h"
#include "train/files/recipe_json.h"
#include "train/models.h"
#include "train/sync/transport_choice.h"

namespace ringlet::app {

namespace {

constexpr double kShortestTimeout = 0.01;  // seconds

/// "lenet, mlp: 0.1; lenet-d2l: 0.2": a field of the models' default recipes.
std::string defaults_of(const char* field) {
  std::vector<std::pair<std::string, std::vector<std::string>>> models_by_value;
  for (const std::string& model : train::model_names()) {
    const nlohmann::json json = to_json(train::default_recipe(model))[field];
    const std::string value = json.is_string()         ? json.get<std::string>()
                              : json.is_number_float() ? fmt::format("{:g}", json.get<double>())
                                                       : json.dump();
    auto same = std::find_if(models_by_value.begin(), models_by_value.end(),
                             [&](const auto& entry) { return entry.first == value; });
    if (same == models_by_value.end()) same = models_by_value.insert(same, {value, {}});
    same->second.push_back(model);
  }
  if (models_by_value.size() == 1) return models_by_value.front().first;
  std::string text;
  for (const auto& [value, models] : models_by_value) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", fmt::join(models, ", "), value);
  }
  return text;
}

/// "lenet, mlp": the models whose default recipe has `value` in `field`.
std::string models_with(const char* field, bool value) {
  std::vector<std::string> models;
  for (const std::string& model : train::model_names()) {
    if (to_json(train::default_recipe(model))[field] == value) models.push_back(model);
  }
  return fmt::format("{}", fmt::join(models, ", "));
}

/// Adds a flag of the recipe with a value; the value is stored in flags.recipe under `field`.
template <class T>
CLI::Option* add_recipe_option(CLI::App& app, RawFlags& flags, const std::string& name,
                               const char* field, const std::string& description) {
  return app
      .add_option_function<T>(
          name, [&flags, field](const T& value) { flags.recipe[field] = value; },
          fmt::format("{} [{}]", description, defaults_of(field)))
      ->group(kRecipeGroup);
}

/// Adds a switch. On the command line it sets `field` to `value`. A configuration may also say
/// false, which sets the opposite.
CLI::Option* add_recipe_switch(CLI::App& app, RawFlags& flags, const std::string& name,
                               const char* field, bool value, const std::string& description) {
  return app
      .add_flag_function(
          name,
          [&flags, field, value](std::int64_t on) { flags.recipe[field] = (on > 0) == value; },
          description)
      ->disable_flag_override()
      ->group(kRecipeGroup);
}

/// Adds the flags that say what becomes of an image before a model sees it.
void add_image_flags(CLI::App& app, RawFlags& flags) {
  std::vector<std::string> sources = train::normalizations();
  sources.emplace_back("none");
  CLI::Option* source =
      app.add_option_function<std::string>(
             "--normalize",
             [&flags](const std::string& name) {
               flags.recipe["normalize"] = name != "none";
               if (name != "none") flags.recipe["normalize_by"] = name;
             },
             fmt::format("whose mean and deviation of pixels: the training images' own (data), "
                         "ImageNet's, CIFAR-10's [{}; {}: none]",
                         train::Recipe().normalize_by, models_with("normalize", false)))
          ->check(one_of(sources))
          ->type_name(fmt::format("{}", fmt::join(sources, "|")))
          ->group(kRecipeGroup);
  add_recipe_switch(app, flags, "--no-normalize", "normalize", false,
                    "only divide pixels by 255 [" + models_with("normalize", false) + "]")
      ->excludes(source);
  const std::vector<std::string>& kinds = data::augment_names();
  add_recipe_option<std::string>(app, flags, "--augment", "augment",
                                 "vary the training images, in each epoch otherwise")
      ->check(one_of(kinds))
      ->type_name(fmt::format("{}", fmt::join(kinds, "|")));
  constexpr int kLargest = 4096;
  app.add_option_function<int>(
         "--image-size", [&flags](const int& size) { flags.recipe["image_size"] = size; },
         fmt::format("pixels of a side that a model sees of photographs in a folder [{}]",
                     data::kUsualImageSize))
      ->check(whole_number(1, kLargest))
      ->group(kRecipeGroup);
  add_recipe_switch(
      app, flags, "--no-exif", "exif", false,
      "take the JPEGs of a folder as they are stored, not as their cameras were held");
}

/// The first GPU of this process.
int first_gpu(const RawFlags& flags) {
  if (!flags.in_processes) return 0;
  const auto place = checked([] { return comm::place_from_environment(); });
  return place ? comm::first_device(*place, flags.replicas, cuda_device_count()) : 0;
}

std::vector<DeviceId> devices_of(const RawFlags& flags) {
  std::vector<DeviceId> devices;
  for (const std::string& name : flags.devices) devices.push_back(DeviceId::parse(name));
  if (!devices.empty()) return devices;
  const DeviceId device = DeviceId::parse(flags.device);
  devices.assign(static_cast<std::size_t>(flags.replicas), device);
  if (flags.device == "cuda") {  // without a number: one replica on each GPU
    int next = first_gpu(flags);
    for (DeviceId& gpu : devices) gpu.index = next++;
  }
  return devices;
}

train::LayoutChoice layout_of(const std::string& name) {
  if (name == "nchw") return train::LayoutChoice::nchw;
  return name == "lanes" ? train::LayoutChoice::lanes : train::LayoutChoice::automatic;
}

/// Number of processes of the run; under a launcher, the launcher's number.
int processes_of(const RawFlags& flags) {
  if (!flags.in_processes) return 1;
  if (flags.processes) return *flags.processes;
  const auto place = checked([] { return comm::place_from_environment(); });
  return place ? place->processes : 1;
}

/// Whether collectives beside backward have a processor to run on. On a GPU they always have. On
/// processors they have where the replicas leave one idle; where they do not, a thread for the
/// collectives would only take turns with the one that computes.
bool has_room_to_overlap(const RawFlags& flags, const train::Execution& execution) {
  if (execution.devices.front().kind == DeviceKind::cuda) return true;
  const auto busy =
      static_cast<std::size_t>(processes_of(flags) * execution.threads) * execution.devices.size();
  return busy < static_cast<std::size_t>(usable_processors());
}

/// Whether replicas that are threads may meet over NCCL.
bool are_threads_on_gpus(const RawFlags& flags) {
  if (flags.transport == "local") return false;
  const auto on_gpu = [](const std::string& device) { return device.starts_with("cuda"); };
  if (flags.devices.empty()) return flags.replicas > 1 && on_gpu(flags.device);
  return flags.devices.size() > 1 && on_gpu(flags.devices.front());
}

train::TrainOptions with_recipe(const RawFlags& flags, const train::Recipe& recipe) {
  train::TrainOptions options = flags.options;
  options.recipe = recipe;
  options.synthetic_train = flags.synthetic_train.value_or(options.synthetic_train);
  options.synthetic_test = flags.synthetic_test.value_or(options.synthetic_test);
  train::Execution& execution = options.execution;
  if (are_threads_on_gpus(flags)) load_cuda_kernels_eagerly();
  execution.devices = devices_of(flags);
  execution.in_processes = flags.in_processes && flags.processes != 1;
  execution.layout = layout_of(flags.layout);
  execution.overlap =
      flags.overlap == "auto" ? has_room_to_overlap(flags, execution) : flags.overlap == "on";
  execution.graph = flags.graph == "on";
  execution.on_hang = end_despite_running_threads;
  execution.sync = !flags.sync.empty() ? flags.sync : recipe.exact ? "doubling" : "auto";
  execution.transport = train::transport_named(flags.transport);
  execution.transport = checked([&] { return train::choose_transport(execution); });
  return options;
}

/// Fields that flags can only switch off.
bool is_on_by_default(const std::string& field) {
  return field == "shuffle" || field == "normalize" || field == "exif";
}

/// "--lr 0.1", "--exact", "no --exact": how the command line says a field of the recipe.
std::string as_flag(const std::string& field, const nlohmann::json& value) {
  const bool on_by_default = is_on_by_default(field);
  if (field == "normalize_by") return "--normalize " + value.get<std::string>();
  std::string flag = (on_by_default ? "--no-" : "--") + field;
  std::replace(flag.begin(), flag.end(), '_', '-');
  if (value.is_boolean()) return (value.get<bool>() == on_by_default ? "no " : "") + flag;
  return flag + " " + (value.is_string() ? value.get<std::string>() : value.dump());
}

/// Adds a flag whose value is given and not that of the run.
void contradict(std::optional<std::int64_t> given, const char* flag, std::int64_t of_run,
                std::vector<std::string>& contradictions) {
  if (given.value_or(of_run) == of_run) return;
  contradictions.push_back(fmt::format("{} {} (the run has {})", flag, *given, of_run));
}

/// A run notes its recipe as JSON, which is UTF-8; a folder's name need not be.
void require_utf8(const nlohmann::json& data) {
  try {
    (void)data.dump();
  } catch (const nlohmann::json::exception&) {
    throw UsageError(
        "--data: the folder's name is not UTF-8, as a run's notes have to be; rename it");
  }
}

}  // namespace

void add_recipe_flags(CLI::App& app, RawFlags& flags) {
  using std::int64_t;
  add_recipe_option<int64_t>(app, flags, "--batch-size", "batch_size",
                             "the GLOBAL batch: samples of an optimiser step over all replicas")
      ->check(whole_number(1));
  add_recipe_option<int>(app, flags, "--epochs", "epochs", "times through the training data")
      ->check(whole_number(1));
  add_recipe_option<double>(app, flags, "--lr", "lr", "learning rate; with one-cycle its maximum")
      ->check(number(0));
  add_recipe_option<double>(app, flags, "--momentum", "momentum", "momentum of SGD")
      ->check(number(0, 1));
  CLI::Option* nesterov =
      add_recipe_switch(app, flags, "--nesterov", "nesterov", true,
                        "Nesterov's momentum [" + models_with("nesterov", true) + "]");
  add_recipe_switch(app, flags, "--no-nesterov", "nesterov", false,
                    "plain momentum [" + models_with("nesterov", false) + "]")
      ->excludes(nesterov);
  add_recipe_option<double>(app, flags, "--weight-decay", "weight_decay",
                            "adds this times the parameter to its gradient")
      ->check(number(0));
  add_recipe_option<std::string>(app, flags, "--schedule", "schedule",
                                 "of the learning rate; one-cycle is PyTorch's OneCycleLR")
      ->check(one_of({"constant", "one-cycle"}))
      ->type_name("constant|one-cycle");
  add_recipe_switch(app, flags, "--cycle-momentum", "cycle_momentum", true,
                    "one-cycle: momentum goes 0.95 -> 0.85 -> 0.95 while the rate rises and falls");
  add_recipe_option<std::uint64_t>(app, flags, "--seed", "seed",
                                   "of the weights, the order of samples and dropout")
      ->check(seed_number());
  add_recipe_switch(app, flags, "--no-shuffle", "shuffle", false, "take the samples in file order");
  add_image_flags(app, flags);
  add_recipe_option<int>(app, flags, "--accumulate", "accumulate",
                         "forward and backward passes for each replica's share of a batch")
      ->check(whole_number(1));
  add_recipe_switch(app, flags, "--exact", "exact", true,
                    "add gradients in one fixed tree: the same bits for 1, 2, 4 and 8 replicas");
  add_recipe_option<int>(app, flags, "--shards", "shards",
                         "logical shards of a batch; 0: 8 with --exact, else one for each replica")
      ->check(whole_number(0));
  add_recipe_option<std::string>(app, flags, "--grad-dtype", "grad_dtype",
                                 "type in which gradients travel; f16 and bf16 halve the bytes and "
                                 "round the sums")
      ->check(one_of({"f32", "f16", "bf16"}))
      ->type_name("f32|f16|bf16");
  app.add_option_function<std::string>(
         "--batch-norm", [&flags](const std::string& value) { flags.recipe["batch_norm"] = value; },
         "whose batch gives batch norm its mean and variance: of each replica's share (with "
         "--exact of each shard), or of the whole world [shard]")
      ->check(one_of({"shard", "world"}))
      ->type_name("shard|world")
      ->group(kRecipeGroup);
}

void add_replica_flags(CLI::App& app, RawFlags& flags) {
  train::Execution& execution = flags.options.execution;
  const char* group = "Replicas";
  constexpr int kMost = 1024;
  auto* replicas =
      app.add_option("--replicas", flags.replicas, "copies of the model, each on its own thread")
          ->check(whole_number(1, kMost))
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
      ->check(whole_number(1, kMost))
      ->capture_default_str()
      ->group(group);
  app.add_option(
         "--workers", execution.workers,
         "threads of each replica that read and decode images; 0: in the step itself [1; on "
         "GPUs up to 8]")
      ->check(whole_number(0, kMost))
      ->group(group);
  app.add_option("--layout", flags.layout, "of images in memory; auto takes the faster one")
      ->check(one_of({"auto", "nchw", "lanes"}))
      ->type_name("auto|nchw|lanes")
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
               "multiply f32 on tensor cores, with factors rounded to 10 bits")
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
         "KiB of gradients that are summed at once; 0: each parameter by itself [1024; on GPUs "
         "25600]")
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

FlagValues values_of(const train::TrainOptions& options) {
  FlagValues values{{"synthetic-train", fmt::format("{}", options.synthetic_train)},
                    {"synthetic-test", fmt::format("{}", options.synthetic_test)}};
  const nlohmann::json recipe = to_json(options.recipe);
  for (const auto& [field, value] : recipe.items()) {
    if (field == "image_size" && value == 0) continue;  // whatever the data have
    std::string key = field;
    std::replace(key.begin(), key.end(), '_', '-');
    if (field == "normalize_by") {
      values["normalize"] = options.recipe.normalize ? options.recipe.normalize_by : "none";
    } else if (is_on_by_default(field)) {
      values["no-" + key] = value.get<bool>() ? "false" : "true";
    } else {
      values[key] = value.is_string()         ? value.get<std::string>()
                    : value.is_number_float() ? fmt::format("{}", value.get<double>())
                                              : value.dump();
    }
  }
  return values;
}

train::TrainOptions resolve(const RawFlags& flags) {
  nlohmann::json recipe = to_json(train::default_recipe(flags.model));
  recipe.update(flags.recipe);
  require_utf8(recipe.at("data"));
  return with_recipe(flags, train::recipe_from_json(recipe, "the command line"));
}

train::TrainOptions resolve(const RawFlags& flags, const train::Recipe& saved,
                            const std::optional<train::ModelInfo>& model) {
  const nlohmann::json recipe = to_json(saved);
  std::vector<std::string> contradictions;
  for (const auto& [field, value] : flags.recipe.items()) {
    if (recipe.at(field) == value) continue;
    contradictions.push_back(as_flag(field, value) + " (the run has " +
                             as_flag(field, recipe.at(field)) + ")");
  }
  if (model && says_sizes(*model)) {
    contradict(flags.synthetic_train, "--synthetic-train", model->train_samples, contradictions);
    contradict(flags.synthetic_test, "--synthetic-test", model->test_samples, contradictions);
  }
  if (!contradictions.empty()) {
    throw UsageError(
        fmt::format("--resume goes on with the run's own recipe, which contradicts {}; leave that "
                    "out, or start anew with --init MODEL",
                    fmt::join(contradictions, ", ")));
  }
  return with_recipe(flags, saved);
}

}  // namespace ringlet::app
