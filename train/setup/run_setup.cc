#include "train/setup/run_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/files/atomic_file.h"
#include "base/processors.h"
#include "base/sampling.h"
#include "comm/all_reduce/auto.h"
#include "data/border.h"
#include "data/open_dataset.h"
#include "data/pair_images.h"
#include "kernels/margin_softmax.h"
#include "nn/smallest_norm.h"
#include "train/batches/batch_source.h"
#include "train/files/recipe_json.h"
#include "train/optimizers/optimizer.h"
#include "train/recipe/recipe_options.h"
#include "train/recipe/version.h"
#include "train/setup/precision_trial.h"
#include "train/setup/run_length.h"
#include "train/setup/run_options.h"
#include "train/sync/shard_tree.h"
#include "train/sync/transport_choice.h"
#include "train/task/class_weights.h"
#include "train/task/classification.h"
#include "train/task/freezing.h"

namespace ringlet::train {

namespace {

constexpr int kExactShards = 8;
constexpr int kStepsInFlight = 2;  // enough to hide the host's work, few enough to stop soon

bool power_of_two(int n) { return n > 0 && std::has_single_bit(static_cast<unsigned>(n)); }

/// Throws ContractError where a step would be cut into more parts than it has samples.
void require_samples_for(const Recipe& recipe, std::int64_t size) {
  const std::int64_t batch = std::min(recipe.batch_size, size);
  const auto check = [batch](const char* flag, int parts) {
    if (parts <= batch) return;
    throw ContractError(std::string(flag) + " " + std::to_string(parts) + " is more than the " +
                        std::to_string(batch) + " samples of a step; take less");
  };
  check("--shards", recipe.shards);
  check("--accumulate (--micro-batches)", recipe.accumulate);
}

/// Throws FileError where the state of a run is that of no moment of it.
void require_within(const SavedState& saved, const RunSetup& setup) {
  const std::string source = (saved.folder / "state.json").string();
  const Progress& progress = saved.progress;
  if (progress.step > setup.planned_steps) {
    throw FileError(source + " names step " + std::to_string(progress.step) + " of a run of " +
                    std::to_string(setup.planned_steps) + " steps; the file is damaged");
  }
  if (progress.epoch_samples > setup.partition.size) {
    throw FileError(source + " counts " + std::to_string(progress.epoch_samples) +
                    " samples, which no run sees; the file is damaged");
  }
  if (progress.untested && progress.step % setup.partition.steps_per_epoch() != 0) {
    throw FileError(source + " names an epoch that is still to be tested, at step " +
                    std::to_string(progress.step) + ", where none ends; the file is damaged");
  }
}

int choose_shards(const TrainOptions& options, int ranks) {
  const Recipe& recipe = options.recipe;
  const int shards = recipe.shards > 0 ? recipe.shards : recipe.exact ? kExactShards : ranks;
  if (shards < ranks) {
    throw ContractError("--shards " + std::to_string(shards) + " is less than the " +
                        std::to_string(ranks) + " replicas; every replica needs a shard");
  }
  if (!recipe.exact) return shards;
  if (!power_of_two(shards) || !power_of_two(ranks)) {
    throw ContractError(
        "--exact adds gradients in a binary tree: it needs a power of two for the "
        "shards and the replicas, not " +
        std::to_string(shards) + " shards and " + std::to_string(ranks) + " replicas");
  }
  if (ranks > 1 && !options.execution.strategies.has(options.execution.sync,
                                                     &comm::Strategy::adds_as_shard_tree)) {
    throw ContractError(
        "--exact needs --sync doubling, the one strategy that adds in the shards' "
        "tree; --sync " +
        options.execution.sync + " adds in another order");
  }
  return shards;
}

nn::ModelInput model_input(const data::Dataset& data) {
  return {static_cast<int>(data.channels()), static_cast<int>(data.height()),
          static_cast<int>(data.width()), static_cast<int>(data.target_values())};
}

ModelInfo model_info(const TrainOptions& options, const data::Splits& splits,
                     const data::LoaderOptions& loader) {
  const Recipe& recipe = options.recipe;
  const data::Dataset& data = *splits.train;
  const nn::ModelInput input = model_input(data);
  std::optional<float> background;  // photographs have none
  if (options.task) return {.task = options.task->name()};
  if (!data.photographs()) background = static_cast<float>(data::border_brightness(data));
  return {.version = kVersion,
          .model = recipe.model,
          .data = recipe.data,
          .train_samples = data.size(),
          .test_samples = splits.test->size(),
          .channels = input.channels,
          .height = input.height,
          .width = input.width,
          .output_names = data.target_names(),
          .embedding = recipe.has_margin() ? recipe.embedding_size : 0,
          .scale = recipe.has_margin() ? recipe.scale : 0,
          .mean = loader.mean,
          .deviation = loader.deviation,
          .background = background,
          .photographs = data.photographs(),
          .exif = recipe.exif,
          .split = data.photographs() ? recipe.split : 0,
          .skip_broken = options.skip_broken && data.photographs()};
}

/// Mean and deviation of pixels / 255 as `recipe` has them.
void normalize(const Recipe& recipe, const data::Dataset& train, data::LoaderOptions& loader) {
  if (!recipe.normalize || train.pixels() == 0) return;
  if (recipe.normalize_by == "data") {
    loader.mean = train.mean();
    loader.deviation = train.deviation();
    return;
  }
  const Normalization named = normalization_named(recipe.normalize_by, train.channels());
  loader.mean = named.mean;
  loader.deviation = named.deviation;
}

/// Threads of a replica that read samples: one that prepares batches ahead, where nothing has to be
/// read or the replica computes on processors itself; for a GPU its share of the processors.
int workers_of(const Execution& execution, bool reads) {
  constexpr int kEnough = 8;
  if (execution.workers >= 0) return execution.workers;
  if (!reads || execution.devices.front().kind == DeviceKind::cpu) return 1;
  const int share = usable_processors() / static_cast<int>(execution.devices.size());
  return std::clamp(share, 1, kEnough);
}

/// The flag by which data that --data calls `name` can be others.
const char* flag_of_data(const std::string& name) {
  const data::NamedDataset* named = data::find_dataset(name);
  const auto needs = named != nullptr ? named->needs : data::DataNeeds::nothing;
  if (needs == data::DataNeeds::sizes) return "--synthetic-train";
  return needs == data::DataNeeds::files ? "--data-dir" : "--data";
}

std::string flag_of(const OptionRow& row) { return row.flag_name(); }

/// The table of Ringlet's options and of the program's own.
OptionTable<Recipe> table_of(const TrainOptions& options) {
  OptionTable<Recipe> table = recipe_options();
  table.add(options.own_options);
  return table;
}

/// What ranges are checked of. A program may take a batch that is larger than any data: it is all
/// of them. A precision that is left open becomes one of the others.
Recipe judged(Recipe recipe) {
  recipe.batch_size = std::min(recipe.batch_size, std::int64_t{std::numeric_limits<int>::max()});
  if (recipe.precision == Precision::automatic) recipe.precision = Precision::f32;
  return recipe;
}

/// Throws ContractError unless both halves have the same fields, which one model reads.
void require_same_fields(const data::Dataset& train, const data::Dataset& test) {
  const auto alike = [](const data::FieldSpec& one, const data::FieldSpec& other) {
    return one.name == other.name && one.extents == other.extents;
  };
  const auto one = train.fields(), other = test.fields();
  require(std::equal(one.begin(), one.end(), other.begin(), other.end(), alike), "make_run_setup",
          "the test data have other fields than the training data; give both the same, in one "
          "order");
}

void check(const TrainOptions& options, bool begins) {
  const Recipe& recipe = options.recipe;
  const OptionTable<Recipe> table = table_of(options);
  const bool own_optimizer = options.make_optimizer != nullptr;
  check_ranges(judged(recipe), flag_of, own_optimizer, table);
  check_run_ranges(options);
  if (!own_optimizer) (void)find_optimizer(recipe.optimizer);
  check_belongings(recipe, begins, own_optimizer, table);
  if (options.task) check_own_task(recipe, flag_of);
  check_schedule(recipe, recipe, recipe.epochs);
  require(recipe.verify_every == 0 || !recipe.verify.empty(), "--verify-every",
          "is for --verify, which names the files of pairs; leave it out");
  require(recipe.verify.empty() || stages_in(options.execution.stages) == 1, "--stages",
          "--verify is for a model in one stage so far; leave one of them out");
  for (const auto& [flag, is_given] : {std::pair{"--freeze", !recipe.freeze.empty()},
                                       std::pair{"--head-lr", recipe.head_lr > 0}}) {
    require(!is_given || stages_in(options.execution.stages) == 1, flag,
            "is for a model in one stage so far; leave --stages out");
  }
  require(!begins || recipe.head_lr == 0 || recipe.lr > 0, "--head-lr",
          "goes with --lr, which is 0; to learn the last layer alone, add --freeze all-but-head, "
          "and give --lr instead");
  const char* by_pairs =
      "goes by the test data, and a --loss with a margin is measured on pairs: --verify keeps the "
      "best model in OUT/best; leave it out";
  require(!recipe.has_margin() || recipe.best_by == BestBy::automatic, "--best-by", by_pairs);
  require(!recipe.has_margin() || recipe.patience == 0, "--patience", by_pairs);
  require(!options.execution.recompute || stages_in(options.execution.stages) > 1,
          "--recompute stage", "is for a model in several stages; leave it out, or add --stages 2");
  require(!recipe.exact || recipe.grad_dtype == DType::f32, "--grad-dtype",
          "rounds the sums between replicas, so their number would change the bits; leave it out "
          "with --exact");
  require(!recipe.exact || recipe.batch_norm == BatchStatistics::shard, "--batch-norm world",
          "joins what --exact keeps apart, a shard at a time; leave one of them out");
}

/// The recipe and the execution say the same of tf32.
void agree_on_tf32(TrainOptions& options) {
  Precision& precision = options.recipe.precision;
  bool& tf32 = options.execution.tf32;
  if (tf32 && precision == Precision::f32) precision = Precision::tf32;
  if (tf32 && precision != Precision::tf32) {
    throw ContractError(std::string("--tf32 is --precision tf32, which contradicts --precision ") +
                        name_of(precision) + "; leave one of them out");
  }
  tf32 = precision == Precision::tf32;
}

/// Samples of the smallest pass with any of `step` whose statistics batch norm takes.
std::int64_t smallest_norm_batch(const Partition& partition, bool over_world, std::int64_t step) {
  std::int64_t smallest = partition.size;
  const auto note = [&](std::int64_t samples) {
    if (samples > 0) smallest = std::min(smallest, samples);
  };
  for (std::int64_t unit = 0; unit < partition.units(0); ++unit) {
    std::int64_t together = 0;
    for (int rank = 0; rank < partition.ranks; ++rank) {
      const std::int64_t samples = partition.unit(step, rank, unit).size();
      together += samples;
      if (!over_world) note(samples);
    }
    note(together);
  }
  return smallest;
}

/// Floats of a sample.
std::int64_t numbers_of_sample(const data::Dataset& data) {
  std::int64_t numbers = data.pixels();
  for (const data::Field& field : data.fields()) numbers += field.numbers();
  return numbers;
}

/// Null: classification by the recipe alone.
std::shared_ptr<const Task> task_of(const TrainOptions& options, const data::Dataset& train) {
  const std::string& weights = options.recipe.class_weights;
  if (options.task || weights == kEqualWeights) return options.task;
  return std::make_shared<const Classification>(train.target_values(), options.recipe,
                                                class_weights(weights, train));
}

/// Throws ContractError for weights by which nothing can be divided.
std::vector<float> weights_of(const Task& task, const data::Dataset& train) {
  std::vector<float> weights = task.weights(train);
  if (weights.empty()) return weights;
  const auto counts = [](float weight) { return weight > 0; };
  require(std::ssize(weights) == train.size() && std::ranges::all_of(weights, is_weight) &&
              std::ranges::any_of(weights, counts),
          "Task::weights",
          "has a number for each sample of the training data, each 0 or from 1e-30 to 1e30, and "
          "one at least above 0");
  return weights;
}

/// Opens what --verify names. Throws DataError, ContractError for data that are no pictures, and
/// FileError for a file of a former run that is not here.
std::vector<VerificationSet> verification_of(const Recipe& recipe, const data::Dataset& train,
                                             bool resumed) {
  const std::vector<std::filesystem::path> files = verify_files(recipe);
  if (files.empty()) return {};
  const bool sees_pictures = train.channels() == 1 || train.channels() == 3;
  require(sees_pictures && train.pixels() > 0 && train.fields().empty(), "--verify",
          "needs a model of pictures, grey or in colours, and these data are others; leave it out");
  const std::vector<std::string> names = names_of_sets(files);
  std::vector<VerificationSet> sets;
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::error_code error;
    if (resumed && !std::filesystem::exists(files[i], error)) {
      throw FileError(fmt::format(
          "the run's pairs were in '{}', which is not here; say with --verify where they are now",
          files[i].string()));
    }
    sets.push_back({names[i], data::open_pairs(files[i])});
  }
  return sets;
}

std::int64_t largest_unit(const Partition& partition) {
  std::int64_t largest = 1;
  for (int rank = 0; rank < partition.ranks; ++rank) {
    largest = std::max(largest, partition.max_unit(rank));
  }
  return largest;
}

/// Samples of the first replica's passes in a whole step; an empty one costs nothing.
std::vector<std::int64_t> first_sizes(const Partition& partition) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t unit = 0; unit < partition.units(0); ++unit) {
    sizes.push_back(partition.unit(0, 0, unit).size());
  }
  return sizes;
}

/// Calls f(sample) for those of a step, in their order.
template <class F>
void for_each_sample(const RunSetup& setup, std::int64_t step, F f) {
  const Range range = setup.partition.step_range(step);
  const std::int64_t epoch = setup.partition.epoch_of(step);
  const Recipe& recipe = setup.options.recipe;
  const Sampler sampler(setup.partition.size, recipe.seed, recipe.shuffle);
  for (std::int64_t at = range.begin; at < range.end; ++at) f(sampler.index(epoch, at));
}

/// A run writes its model, and its next state, into its folder.
void require_other_folder(const std::filesystem::path& state, const std::filesystem::path& out) {
  std::error_code error;
  if (!std::filesystem::equivalent(state, out, error)) return;
  throw ContractError(fmt::format(
      "{} is a state alone, over which a run that goes on in it would write; name the folder in "
      "which it shall go on with --out",
      state.string()));
}

}  // namespace

RunSetup make_run_setup(const TrainOptions& options, const data::Splits& data, int world,
                        std::optional<SavedState> resumed, comm::Group* group) {
  const int replicas = replicas_in(world, options.execution);
  const Recipe& recipe = options.recipe;
  require(data.train != nullptr && data.test != nullptr, "make_run_setup",
          "Splits::train and Splits::test are data sets, and not null");
  require(world >= 1 && !options.execution.devices.empty(), "make_run_setup",
          "a run has at least one rank, and a device for each of this process");
  require(resumed || options.files.resume.empty(), "Files::resume",
          "names a state that nobody has read; give make_run_setup() the read_state() of it");
  check(options, !resumed);
  if (resumed) require_other_folder(resumed->folder, options.files.out);
  require_same_fields(*data.train, *data.test);
  require_samples_for(recipe, data.train->size());
  if (!options.make_optimizer) check_optimizer(recipe);
  require(
      recipe.has_margin() || options.files.init_centres.empty(), "--init-centres",
      "is for a --loss with centres of classes: arcface, cosface, normface or combined; leave it "
      "out");
  if (recipe.has_margin()) {
    (void)margin_of(recipe);
    if (recipe.class_shards > 0 && recipe.class_shards < replicas) {
      throw ContractError(fmt::format(
          "--class-shards {} is less than the {} replicas; take {} or more, or leave it out",
          recipe.class_shards, replicas, replicas));
    }
  }
  RunSetup setup;
  setup.options = options;
  setup.options.execution.deterministic |= recipe.exact;
  agree_on_tf32(setup.options);
  require(!setup.options.execution.deterministic || !options.execution.autotune, "--autotune",
          "takes the kernel that was the fastest this time, and another may give other bits; leave "
          "it out with --exact and --deterministic");
  const bool chooses_precision = recipe.precision == Precision::automatic;
  require(!setup.options.execution.deterministic || !chooses_precision, "--precision auto",
          "takes the type that was the faster this time, and another run may take another; name "
          "one with --exact and --deterministic");
  const std::string& sync = options.execution.sync;
  require(!recipe.narrow_between || sync == comm::AutoAllReduce::kName ||
              options.execution.strategies.has(sync, &comm::Strategy::narrows_between),
          "--grad-dtype bf16-between",
          "sums by two-level, which knows what goes between machines; leave --sync out");
  setup.data = data;
  setup.replicas = replicas;
  setup.partition = {data.train->size(), recipe.batch_size, choose_shards(options, replicas),
                     replicas,           recipe.accumulate, recipe.exact};
  setup.planned_steps = setup.partition.steps_per_epoch() * recipe.epochs;
  setup.last_step = options.max_steps < 0 ? setup.planned_steps
                                          : std::min(options.max_steps, setup.planned_steps);
  setup.schedule = {static_cast<const RateSpec&>(recipe), static_cast<const ScheduleSpec&>(recipe),
                    setup.planned_steps, setup.partition.steps_per_epoch()};
  normalize(recipe, *data.train, setup.loader);
  setup.loader.augment = {data::parse_augment(recipe.augment), recipe.seed};
  setup.loader.workers =
      workers_of(options.execution,
                 data.train->images().empty() || setup.loader.augment.kind != data::Augment::none);
  setup.model = model_info(options, data, setup.loader);

  // Of stages on several kinds: what suits all of them.
  const bool mixed = mixes_kinds(options.execution);
  const DeviceKind kind = mixed ? DeviceKind::cpu : options.execution.devices.front().kind;
  setup.steps_in_flight = kind == DeviceKind::cuda ? kStepsInFlight : 0;

  const std::int64_t unit = largest_unit(setup.partition);
  setup.replica.recipe = setup.options.recipe;
  setup.replica.make_model = options.make_model;
  setup.replica.input = model_input(*data.train);
  setup.replica.task = task_of(options, *data.train);
  setup.weights = weights_of(*task_of(setup.replica), *data.train);
  setup.keeps_best = !recipe.has_margin();
  setup.replica.fields = {data.train->fields().begin(), data.train->fields().end()};
  require((kind == DeviceKind::cpu && !mixed) || options.execution.layout != LayoutChoice::lanes,
          "--layout lanes", "is for the CPU; leave it out");
  require(kind == DeviceKind::cuda || options.execution.layout != LayoutChoice::nhwc,
          "--layout nhwc", "is for GPUs; leave it out");
  if (chooses_precision) {
    PrecisionChoice choice = choose_precision(setup, group);
    setup.options.recipe.precision = setup.replica.recipe.precision = choice.taken;
    setup.precision_told = std::move(choice.told);
  }
  setup.replica.layout =
      mixed ? Layout::nchw : choose_layout(options.execution.layout, kind, unit, setup.replica);
  if (!recipe.freeze.empty()) {
    const auto model = make_model(setup.replica);
    const nn::Registry registry = nn::register_model(*model);
    mark_parameters(registry, recipe);  // throws what each rank would
    if (!resumed && !options.files.fine_tune) require_head_learns(registry, recipe);
  }
  require_precision(setup.replica, kind, options.execution.emulate_precision);
  setup.replica.max_train_batch = unit;
  setup.evaluation_batch =
      pass_size(kind == DeviceKind::cuda ? 2000 : 250, numbers_of_sample(*data.test));
  setup.replica.max_eval_batch = std::min(setup.evaluation_batch, data.test->size());
  setup.verification = verification_of(recipe, *data.train, resumed.has_value());
  if (!setup.verification.empty()) {
    setup.verification_pass = pass_of_pairs(
        data.train->pixels(), kind == DeviceKind::cuda ? 2000 : 250, data::samples_of_pair(true));
    setup.replica.max_answer_batch = setup.verification_pass.samples;
  }
  setup.replica.gradient_arenas =
      recipe.exact ? ShardTree(static_cast<int>(setup.partition.shards_of(0).size())).arenas() : 1;
  setup.replica.fuse = options.execution.fuse;
  setup.stages =
      stages_of(setup.options, setup.replica, first_sizes(setup.partition), replicas, group);
  setup.loader.max_batch = unit;
  setup.loader.layout = batch_layout(setup.replica.layout);
  setup.options.execution = decided(std::move(setup.options.execution));
  if (resumed) {
    setup.first_step = resumed->progress.step;
    if (!data.train->is_known_as(resumed->data_hash)) {
      throw FileError(resumed->folder.string() + " was trained on other data than " +
                      data.train->description() + "; resume with the data it was started with (" +
                      flag_of_data(recipe.data) + ")");
    }
    require_length(recipe, *resumed, setup.partition.steps_per_epoch());
    require_within(*resumed, setup);
    const comm::StrategyTable& strategies = resumed->progress.strategies;
    if (!strategies.empty() && strategies.front().ranks == replicas) {
      setup.options.execution.table = strategies;
      setup.options.execution.table_of_state = true;
    }
    setup.resumed = std::move(resumed);
  }
  const nlohmann::json fields = all_fields(setup.options.recipe);
  for (const auto& [key, value] : fields.items()) {
    if (key == "data" || key == "verify") continue;  // are compared by what is in them
    std::string name = "--" + key;
    std::ranges::replace(name, '_', '-');
    setup.recipe_entries.emplace_back(name, value.dump());
  }
  return setup;
}

double weight_of_step(const RunSetup& setup, std::int64_t step) {
  double weight = 0;
  if (!setup.weights.empty()) {
    for_each_sample(setup, step, [&](std::int64_t sample) {
      weight += static_cast<double>(setup.weights[static_cast<std::size_t>(sample)]);
    });
  }
  return weight > 0 ? weight : static_cast<double>(setup.partition.step_range(step).size());
}

void labels_of_step(const RunSetup& setup, std::int64_t step, std::vector<std::int32_t>& labels) {
  const auto targets = setup.data.train->targets();
  labels.clear();
  for_each_sample(setup, step, [&](std::int64_t sample) {
    labels.push_back(targets[static_cast<std::size_t>(sample)]);
  });
}

void require_trainable(const RunSetup& setup) {
  const std::int64_t per_epoch = setup.partition.steps_per_epoch();
  const bool over_world = setup.options.recipe.batch_norm == BatchStatistics::world;
  for (const std::int64_t step : {std::int64_t{0}, per_epoch - 1}) {
    const std::int64_t before = (setup.first_step + per_epoch - 1 - step) / per_epoch;
    if (before * per_epoch + step >= setup.last_step) continue;  // the run has no such step
    if (smallest_norm_batch(setup.partition, over_world, step) > 1) continue;
    const ReplicaSpec& spec = setup.replica;
    const auto model = make_model(spec);
    const auto task = task_of(spec);
    const std::int64_t pixels = nn::smallest_normed(nn::register_model(*model), batch_of(spec, 1),
                                                    pass_of(spec, *task, *model, true), spec.fuse);
    if (pixels != 1) return;
    throw ContractError(fmt::format(
        "step {} of each epoch has {} of the {} training samples, which leaves a pass one of them, "
        "and batch norm sees one pixel of it: one value has no variance; take another "
        "--batch-size, fewer replicas, shards or --accumulate (--micro-batches), or --batch-norm "
        "world",
        step + 1, setup.partition.step_range(step).size(), setup.partition.size));
  }
}

void require_room(const TrainOptions& options, int ranks, std::int64_t classes,
                  std::uint64_t memory) {
  const Recipe& recipe = options.recipe;
  const auto& devices = options.execution.devices;
  if (!recipe.has_margin() || devices.front().kind != DeviceKind::cpu) return;
  // The last stage's process has them all: require_fit() knows which one that is.
  if (options.execution.in_processes && stages_in(options.execution.stages) > 1) return;
  constexpr double kBytesOfNumber = 8, kMega = 1e6;
  const double here = static_cast<double>(devices.size()) / ranks;
  const double needed =
      kBytesOfNumber * here * static_cast<double>(classes) * recipe.embedding_size;
  if (needed <= static_cast<double>(memory)) return;
  throw ContractError(fmt::format(
      "--loss {}: the centres of {} classes, of {} numbers each, need {:.0f} MB of memory at least "
      "for {} of {} replicas here, and there are {:.0f} MB; take a smaller --embedding-size, fewer "
      "classes, or replicas on more machines",
      recipe.loss, classes, recipe.embedding_size, needed / kMega, devices.size(), ranks,
      static_cast<double>(memory) / kMega));
}

bool goes_on_in_out(const RunSetup& setup) {
  if (!setup.resumed) return false;
  const std::filesystem::path state = std::filesystem::weakly_canonical(setup.resumed->folder);
  const std::filesystem::path& out = setup.options.files.out;
  std::error_code error;
  return std::filesystem::equivalent(state.parent_path(), out, error) ||
         std::filesystem::equivalent(state, out / "state", error);  // which may be a link
}

void require_own_folder(const RunSetup& setup) {
  const std::filesystem::path& out = setup.options.files.out;
  if (out.empty() || setup.options.files.force || goes_on_in_out(setup)) return;
  std::error_code error;
  for (const char* name : {"state", kModelFile}) {
    if (!std::filesystem::exists(out / name, error)) continue;
    throw FileError(fmt::format(
        "{} holds another run; give make_run_setup() its read_state() to go on with it, or set "
        "Files::force to replace it",
        out.string()));
  }
}

Normalization normalization_named(const std::string& name, std::int64_t channels) {
  if (name == "symmetric") return {0.5F, 0.5F};  // (x / 255 - 0.5) / 0.5
  constexpr int kColours = 3;
  if (channels != kColours) {
    throw ContractError("--normalize " + name + " is for images of 3 channels, and these have " +
                        std::to_string(channels) + "; take --normalize data");
  }
  using data::PerChannel;
  using Three = std::vector<float>;
  if (name == "imagenet") {
    return {PerChannel(Three{0.485F, 0.456F, 0.406F}), PerChannel(Three{0.229F, 0.224F, 0.225F})};
  }
  return {PerChannel(Three{0.4914F, 0.4822F, 0.4465F}),
          PerChannel(Three{0.2470F, 0.2435F, 0.2616F})};
}

}  // namespace ringlet::train
