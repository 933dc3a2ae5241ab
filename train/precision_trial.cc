#include "train/setup/precision_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/interference.h"
#include "base/memory_limits.h"
#include "base/one_line.h"
#include "base/processors.h"
#include "base/stopwatch.h"
#include "comm/all_reduce/auto.h"
#include "comm/shared_text.h"
#include "data/memory_dataset.h"
#include "nn/plan.h"
#include "train/pipeline/stage_table.h"
#include "train/recipe/stage_count.h"
#include "train/trainer.h"

namespace ringlet::train {

namespace {

constexpr double kLong = 2;  // seconds of a step that is the only one
constexpr int kLeastSteps = 2, kMostSteps = 8;
constexpr double kEnough = .3;                  // seconds of timed steps
constexpr std::int64_t kMostPixels = 64 << 20;  // of made-up samples, but for the least steps

/// What is run for each type.
struct Trial {
  std::vector<DeviceId> devices;
  std::int64_t samples = 0;  // of a replica in a step
  int warm_up = 1, most = kMostSteps;
  data::Splits data{};

  int ranks() const { return static_cast<int>(devices.size()); }
  bool on_gpu() const { return devices.front().kind == DeviceKind::cuda; }
};

/// Noise, so that no kernel meets zeros alone, with classes by turns.
std::shared_ptr<const data::Dataset> made_up(const data::Dataset& like, std::int64_t samples) {
  std::vector<std::uint8_t> images(static_cast<std::size_t>(samples * like.pixels()));
  std::uint32_t state = 1;
  for (std::uint8_t& pixel : images) {
    state = 1664525 * state + 1013904223;
    pixel = static_cast<std::uint8_t>(state >> 24);
  }
  std::vector<std::int32_t> targets(static_cast<std::size_t>(samples));
  for (std::int64_t i = 0; i < samples; ++i) {
    targets[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i % like.target_values());
  }
  return std::make_shared<const data::MemoryDataset>(
      data::DatasetInfo{.name = "made up",
                        .channels = like.channels(),
                        .height = like.height(),
                        .width = like.width(),
                        .target_names = like.target_names(),
                        .photographs = like.photographs()},
      std::move(images), std::move(targets));
}

ReplicaSpec spec_in(const RunSetup& setup, Precision precision, const Trial& trial) {
  const Execution& execution = setup.options.execution;
  ReplicaSpec spec = setup.replica;
  spec.recipe.precision = precision;
  spec.fuse = execution.fuse;
  spec.layout = choose_layout(execution.layout, trial.devices.front().kind, trial.samples, spec);
  return spec;
}

/// Why steps of this run cannot be made up; empty: they can.
std::string why_not_made_up(const RunSetup& setup) {
  if (setup.options.task || setup.data.train->pixels() == 0 ||
      setup.data.train->target_values() == 0 || !setup.data.train->fields().empty()) {
    return "samples can be made up of images and classes alone";
  }
  return mixes_kinds(setup.options.execution) ? "its stages are on devices of several kinds" : "";
}

/// Takes fewer samples where processors would be at it for long, by what they do at least. Returns
/// the bytes that the replicas need together, about: values, gradients, the optimiser's numbers,
/// and activations.
double fit_samples(const RunSetup& setup, Trial& trial) {
  constexpr double kNumbersOfElement = 4;
  const ReplicaSpec spec = spec_in(setup, Precision::f32, trial);
  const auto model = make_model(spec);
  const auto task = task_of(spec);
  const std::int64_t few = std::min<std::int64_t>(kLanes, trial.samples);
  const nn::Plan plan = nn::plan_training(nn::register_model(*model), batch_of(spec, few),
                                          pass_of(spec, *task, *model, true), spec.fuse);
  const double flops = (plan.forward.flops + plan.backward.flops) / static_cast<double>(few);
  trial.samples = samples_to_time(trial.samples, flops, setup.options.execution.threads);
  const double bytes_of_sample =
      static_cast<double>(plan.activation_bytes) / static_cast<double>(few);
  const auto standing = static_cast<double>(plan.elements * size_of(DType::f32));
  return trial.ranks() *
         (static_cast<double>(trial.samples) * bytes_of_sample + kNumbersOfElement * standing);
}

/// Without samples that are made up yet.
Trial trial_for(const RunSetup& setup) {
  const Execution& execution = setup.options.execution;
  const bool on_gpu = execution.devices.front().kind == DeviceKind::cuda;
  const bool alone = on_gpu || stages_in(execution.stages) > 1;
  Trial trial{.devices = execution.devices, .samples = setup.partition.max_unit(0)};
  if (alone) trial.devices.resize(1);
  if (on_gpu) trial.warm_up = 3;  // one as it is, one that is captured, one that is launched
  return trial;
}

void make_up_samples(const RunSetup& setup, Trial& trial) {
  const std::int64_t of_step = trial.samples * trial.ranks();
  const data::Dataset& like = *setup.data.train;
  if (of_step * kMostSteps * like.pixels() > kMostPixels) trial.most = kLeastSteps;
  // One step more than is made, so that no epoch ends, whose test would be timed.
  trial.data = {made_up(like, (trial.warm_up + trial.most + 1) * of_step), made_up(like, 1)};
}

RunSetup setup_in(const RunSetup& setup, Precision precision, const Trial& trial) {
  TrainOptions options = setup.options;
  options.files = {};
  options.max_steps = -1;
  Recipe& recipe = options.recipe;
  recipe.precision = precision;
  recipe.batch_size = trial.samples * trial.ranks();
  recipe.accumulate = 1;
  recipe.exact = false;
  recipe.shards = 0;
  recipe.verify.clear();
  recipe.verify_every = 0;
  recipe.class_weights = kEqualWeights;
  recipe.lr = recipe.min_lr = recipe.head_lr = 0;
  Execution& execution = options.execution;
  execution.devices = trial.devices;
  execution.in_processes = false;
  execution.stages = Execution().stages;
  execution.recompute = false;
  execution.transport = TransportChoice::local;
  execution.sync = comm::AutoAllReduce::kName;
  execution.check_replicas = 0;
  execution.tf32 = false;
  return make_run_setup(options, trial.data, trial.ranks());
}

struct Timed {
  std::vector<double> seconds;
  std::string busy;
};

/// How many steps are timed, by what one takes: by the first rank, for all.
int agreed_steps(Device& device, const Ranks& ranks, double seconds, int most) {
  const double wanted = std::ceil(kEnough / std::max(seconds, kEnough / kMostSteps));
  const int steps = seconds > kLong ? 0 : std::clamp(static_cast<int>(wanted), kLeastSteps, most);
  return std::stoi(
      ranks.world
          .gather_text(device.communication(), std::to_string(steps), "how many steps are timed")
          .front());
}

Timed time_steps(const RunSetup& setup, const Trial& trial) {
  Timed timed;
  const Execution& execution = setup.options.execution;
  std::vector<Interference> seen(execution.devices.size());
  comm::LocalGroup group = threads_of(execution);
  run_ranks(group, execution, [&](Device& device, const Ranks& ranks) {
    TrainLoop loop(setup, device, ranks, {});
    const auto time_step = [&loop] {
      const Stopwatch watch;
      loop.step();
      loop.settle();
      return watch.seconds();
    };
    double latest = 0;
    for (int i = 0; i < trial.warm_up; ++i) latest = time_step();
    const int steps = agreed_steps(device, ranks, latest, trial.most);
    std::vector<double> seconds;
    const InterferenceWatch watch;
    for (int i = 0; i < steps; ++i) seconds.push_back(time_step());
    const auto rank = static_cast<std::size_t>(ranks.world.rank());
    seen[rank] = watch.seen();
    if (seconds.empty()) seconds.push_back(latest);
    if (rank == 0) timed.seconds = std::move(seconds);
  });
  Interference worst = worst_of(seen);
  const bool in_turns = std::ssize(seen) * execution.threads > usable_processors();
  if (in_turns) worst.waited = 0;  // the replicas keep each other waiting
  timed.busy = in_words(worst, "a replica's");
  return timed;
}

PrecisionTimes measured(const RunSetup& setup, Precision narrow) {
  PrecisionTimes times{.narrow = narrow, .why_not = why_not_made_up(setup)};
  if (!times.why_not.empty()) return times;
  Trial trial = trial_for(setup);
  times.samples_of_step = setup.partition.rank_range(0, 0).size();
  times.why_not = why_through_f32(spec_in(setup, narrow, trial), trial.devices.front().kind,
                                  setup.options.execution.emulate_precision);
  if (!times.why_not.empty()) return times;
  if (!trial.on_gpu()) {
    const double needed = fit_samples(setup, trial);
    const auto free = static_cast<double>(memory_limits().free);
    if (needed > free) {
      times.why_not = fmt::format("that needs about {} of memory, and {} are free",
                                  bytes_in_words(static_cast<std::int64_t>(needed)),
                                  bytes_in_words(static_cast<std::int64_t>(free)));
      return times;
    }
  }
  make_up_samples(setup, trial);
  times.samples = trial.samples;
  Timed in_f32 = time_steps(setup_in(setup, Precision::f32, trial), trial);
  Timed in_narrow = time_steps(setup_in(setup, narrow, trial), trial);
  times.f32_seconds = std::move(in_f32.seconds);
  times.narrow_seconds = std::move(in_narrow.seconds);
  times.busy = in_f32.busy.empty() ? in_narrow.busy : in_f32.busy;
  return times;
}

/// What fails here is no failure of the run.
PrecisionTimes measured_if_possible(const RunSetup& setup, Precision narrow) {
  try {
    return measured(setup, narrow);
  } catch (const std::exception& error) {
    return {.narrow = narrow, .why_not = on_one_line(error.what())};
  }
}

}  // namespace

std::int64_t samples_to_time(std::int64_t samples, double flops_of_sample, int threads) {
  constexpr double kFlopsOfThread = 5e10, kSeconds = 1;
  const double possible = kSeconds * kFlopsOfThread * threads / flops_of_sample;
  if (possible >= static_cast<double>(samples)) return samples;
  const std::int64_t blocks =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(possible) / kLanes);
  return std::min(samples, blocks * kLanes);
}

PrecisionTimes time_precisions(const RunSetup& setup, Precision narrow, comm::Group* group) {
  const Execution& execution = setup.options.execution;
  if (!execution.in_processes) return measured_if_possible(setup, narrow);
  if (group == nullptr) return {.narrow = narrow, .why_not = "no process tells the others"};
  return precision_times_of(
      comm::from_first(*group, "times of steps in two types", execution.comm_timeout,
                       [&] { return to_text(measured_if_possible(setup, narrow)); }));
}

PrecisionChoice choose_precision(const RunSetup& setup, comm::Group* group) {
  const PrecisionTimes times = time_precisions(setup, Precision::bf16, group);
  const Precision taken = faster_of(times) == Faster::narrow ? times.narrow : Precision::f32;
  return {taken, fmt::format("--precision {}: {}", name_of(taken), in_words(times))};
}

bool wants_timing(const RunSetup& setup) {
  constexpr std::int64_t kFewSteps = 100;
  return is_narrow(setup.options.recipe.precision) && !setup.resumed &&
         setup.precision_told.empty() && !setup.options.execution.emulate_precision &&
         setup.last_step >= kFewSteps;
}

std::string told_of_precision(const RunSetup& setup, comm::Group* group) {
  if (!wants_timing(setup)) return {};
  const Recipe& recipe = setup.options.recipe;
  const PrecisionTimes times = time_precisions(setup, recipe.precision, group);
  const bool may_be_auto = !setup.options.execution.deterministic;
  std::string told = in_words(times);
  if (faster_of(times) != Faster::f32) return told;
  return told + (may_be_auto && recipe.precision == Precision::bf16
                     ? " (--precision auto takes the faster)"
                     : " (leave --precision out)");
}

}  // namespace ringlet::train
