// ringlet pipeline
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/cli/commands.h"
#include "app/cli/error_exit.h"
#include "app/cli/outputs.h"
#include "app/cli/usage.h"
#include "app/commands/pipeline_flags.h"
#include "app/report/pipeline_page.h"
#include "base/files/atomic_file.h"
#include "base/memory_limits.h"
#include "base/one_line.h"
#include "base/processors.h"
#include "train/forecast/forecast.h"
#include "train/forecast/unit_costs.h"
#include "train/setup/stage_rehearsal.h"

namespace ringlet::app {

namespace {

using train::Forecast;

/// Samples of a replica's share of a batch, and the micro-batches that it falls into.
std::vector<std::int64_t> sizes_of(const PipelineFlags& flags, const train::TrainOptions& options,
                                   int stages) {
  const int replicas = flags.train.replicas;
  const std::int64_t batch = options.recipe.batch_size;
  if (batch < replicas) {
    throw UsageError(fmt::format(
        "--batch-size {} leaves some of {} replicas without a sample; take more", batch, replicas));
  }
  const std::int64_t share = (batch + replicas - 1) / replicas;  // of the first, the largest
  if (flags.micro_batches > share) {
    throw UsageError(fmt::format(
        "--micro-batches {} is more than the {} samples that a replica has of --batch-size {}; "
        "take less",
        flags.micro_batches, share, batch));
  }
  const DeviceKind kind = options.execution.devices.front().kind;
  const int count = flags.micro_batches > 0 ? flags.micro_batches
                                            : train::usual_micro_batches(stages, share, kind);
  return train::micro_batch_sizes(share, count);
}

/// How many stages are asked for; of those written by hand, their commas.
int stages_asked_for(const PipelineFlags& flags) {
  const int number = number_of_stages(flags);
  if (number > 0) return number;
  return static_cast<int>(std::count(flags.stages.begin(), flags.stages.end(), ',')) + 1;
}

train::UnitCosts costs_of(const PipelineFlags& flags, const train::TrainOptions& options,
                          const DeviceId& id, train::CutModel& model, std::int64_t& free) {
  train::UnitCosts costs;
  if (flags.measures) {
    const train::Execution& execution = options.execution;
    const auto device = open_device(id, {.threads = execution.threads,
                                         .overlap = false,
                                         .tf32 = execution.tf32,
                                         .deterministic = execution.deterministic});
    if (id.kind == DeviceKind::cuda) free = device->free_bytes() - device->scratch_limit();
    costs = train::measure_costs(model, *device);
    if (flags.link > 0) costs.per_byte = 1 / flags.link;
  } else {
    costs = train::plan_costs(model);
  }
  return costs;
}

std::string in_words(const std::vector<DeviceId>& devices, int stage, int replicas) {
  std::vector<std::string> names;
  for (int replica = 0; replica < replicas; ++replica) {
    const std::string name =
        devices[static_cast<std::size_t>(stage * replicas + replica)].to_string();
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  if (names.size() > 2) return fmt::format("{} .. {}", names.front(), names.back());
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The bytes of each stage's device, as far as somebody knows; a GPU's are those of its stages
/// together.
std::vector<std::int64_t> capacities(const PipelineFlags& flags, std::int64_t free,
                                     const std::vector<DeviceId>& devices, int stages) {
  if (flags.memory > 0)
    return std::vector<std::int64_t>(static_cast<std::size_t>(stages), flags.memory);
  if (free <= 0) return {};
  std::vector<std::int64_t> bytes;
  for (int stage = 0; stage < stages; ++stage) {
    const auto& own = devices[static_cast<std::size_t>(stage * flags.train.replicas)];
    bytes.push_back(free / std::count(devices.begin(), devices.end(), own));
  }
  return bytes;
}

/// ", arcface of 1000 centres of 512"; nothing of the usual loss.
std::string loss_in_words(const train::ReplicaSpec& spec) {
  const train::Recipe& recipe = spec.recipe;
  if (!recipe.has_margin()) return "";
  const std::string sampled =
      recipe.sample_rate < 1 ? fmt::format(", {:g} of them a step", recipe.sample_rate) : "";
  return fmt::format(", {} of {} centres of {}{}", recipe.loss, spec.input.outputs,
                     recipe.embedding_size, sampled);
}

/// What was asked for, and what came of it.
struct Planned {
  train::TrainOptions options;
  train::CutModel model;
  train::UnitCosts costs;
  Forecast forecast;
  std::string title{};
  std::string memory{};  ///< whether it fits, in words; empty: nobody knows

  bool fits() const { return !memory.starts_with("does not"); }
};

std::string title(const train::CutModel& model, const train::TrainOptions& options,
                  const PipelineFlags& flags, const DeviceId& device, bool together) {
  const nn::ModelInput& input = model.spec.input;
  const train::Execution& execution = options.execution;
  const std::string threads =
      device.kind == DeviceKind::cpu
          ? fmt::format(", {} thread{}", execution.threads, execution.threads == 1 ? "" : "s")
          : "";
  const std::string costs = flags.measures
                                ? fmt::format("measured on {}{}{}", device.to_string(), threads,
                                              together ? ", all stages together" : "")
                                : std::string("planned");
  const std::string replicas =
      flags.train.replicas == 1 ? "" : fmt::format(", {} replicas", flags.train.replicas);
  return fmt::format("{}, {} x {} x {}{}, batch {}{}, {}, {}, costs {}", options.recipe.model,
                     input.channels, input.height, input.width, loss_in_words(model.spec),
                     options.recipe.batch_size, replicas, name_of(options.recipe.precision),
                     name_of(model.spec.layout), costs);
}

std::int64_t bytes_of_all(const Forecast& forecast) {
  std::int64_t bytes = 0;
  for (const train::StageRow& row : forecast.stages) bytes += forecast.replicas * row.bytes();
  return bytes;
}

/// Whether this machine can run all ranks at once, each with the threads that it is to have.
bool can_rehearse(const std::vector<DeviceId>& devices, int threads, const Forecast& forecast) {
  const auto on_cpu = [](const DeviceId& device) { return device.kind == DeviceKind::cpu; };
  return forecast.measured && devices.size() > 1 && std::ranges::all_of(devices, on_cpu) &&
         static_cast<int>(devices.size()) * threads <= usable_processors() &&
         bytes_of_all(forecast) <= static_cast<std::int64_t>(memory_limits().free);
}

/// Adds what the stages take together.
void rehearse(const PipelineFlags& flags, const Planned& planned, const nn::Stages& stages,
              train::ForecastOptions& how) {
  train::StagesSetup setup;
  setup.cuts = stages;
  setup.specs = train::specs_of(planned.model.units, stages);
  train::StageRehearsal rehearsal{.execution = planned.options.execution,
                                  .whole = planned.model.spec,
                                  .sizes = planned.forecast.sizes,
                                  .replicas = flags.train.replicas};
  rehearsal.execution.pipeline = flags.schedule;
  rehearsal.execution.recompute = flags.recompute;
  choose_length(rehearsal, setup.count(), planned.forecast.step.seconds);
  train::RehearsedStages found = rehearse_stages(setup, rehearsal);
  if (flags.link > 0) {
    found.times.activation = planned.forecast.times.activation;
    found.times.gradient = planned.forecast.times.gradient;
  }
  how.together = std::move(found.times);
  how.scratch = std::move(found.scratch);
}

/// Of processors, whose memory all stages of a machine share.
std::string shared_memory_in_words(const Forecast& forecast) {
  const std::int64_t bytes = bytes_of_all(forecast);
  const auto memory = static_cast<std::int64_t>(usable_memory());
  const std::string both =
      fmt::format("{} of {}", train::bytes_in_words(bytes), train::bytes_in_words(memory));
  return bytes <= memory ? "all stages together fit this machine's memory: " + both
                         : "does not fit: all stages together would have " + both;
}

nlohmann::json to_json(const Forecast& forecast, const train::CutModel& model,
                       const train::UnitCosts& costs, const train::TrainOptions& options) {
  const nn::ModelInput& input = model.spec.input;
  nlohmann::json json = to_json(forecast);
  json["model"] = options.recipe.model;
  json["image"] = {input.channels, input.height, input.width};
  json["classes"] = input.outputs;
  json["loss"] = options.recipe.loss;
  json["batch_size"] = options.recipe.batch_size;
  json["precision"] = name_of(options.recipe.precision);
  json["layout"] = name_of(model.spec.layout);
  json["threads"] = options.execution.threads;
  for (const train::UnitCost& part : costs.parts) {
    json["units"].push_back({{"name", part.name},
                             {costs.measured ? "forward_seconds" : "forward", part.forward},
                             {costs.measured ? "backward_seconds" : "backward", part.backward}});
  }
  return json;
}

/// By hand, or so many of which nothing is known yet.
nn::Stages stages_of(const PipelineFlags& flags, const nn::Units& units) {
  const int number = number_of_stages(flags);
  return checked([&] {
    if (number == 0) return nn::parse_stages(flags.stages, units);
    units.require_stages(number);
    return nn::Stages(static_cast<std::size_t>(number));
  });
}

Planned plan(const PipelineFlags& flags, const train::TrainOptions& options) {
  const int replicas = flags.train.replicas;
  const std::vector<std::int64_t> sizes = sizes_of(flags, options, stages_asked_for(flags));
  Planned planned{.options = options, .model = model_of(flags, options, sizes.front())};
  nn::Stages stages = stages_of(flags, planned.model.units);
  const int count = static_cast<int>(stages.size());
  const std::vector<DeviceId> devices = devices_of(flags, stages);
  std::int64_t free = 0;
  planned.costs = costs_of(flags, options, devices.front(), planned.model, free);
  train::ForecastOptions how{.schedule = flags.schedule,
                             .sizes = sizes,
                             .replicas = replicas,
                             .capacity = capacities(flags, free, devices, count),
                             .recompute = flags.recompute};
  for (int stage = 0; stage < count; ++stage) {
    how.devices.push_back(in_words(devices, stage, replicas));
  }
  if (number_of_stages(flags) > 0) {
    stages =
        checked([&] { return train::balanced_stages(planned.model, planned.costs, count, how); });
  }
  planned.forecast = train::forecast(planned.model, planned.costs, stages, how);
  if (train::can_rehearse(planned.model.spec) &&
      can_rehearse(devices, options.execution.threads, planned.forecast)) {
    rehearse(flags, planned, stages, how);
    planned.forecast = train::forecast(planned.model, planned.costs, stages, how);
  }
  const bool shares_memory = how.capacity.empty() && devices.front().kind == DeviceKind::cpu;
  planned.memory =
      shares_memory ? shared_memory_in_words(planned.forecast) : memory_in_words(planned.forecast);
  planned.title = title(planned.model, options, flags, devices.front(), planned.forecast.together);
  return planned;
}

void write_files(const PipelineFlags& flags, const Planned& planned) {
  const Forecast& forecast = planned.forecast;
  if (!flags.json.empty()) {
    nlohmann::json json = to_json(forecast, planned.model, planned.costs, planned.options);
    json["fits"] = planned.memory.empty() ? nlohmann::json() : nlohmann::json(planned.fits());
    write_file_atomically(flags.json, json.dump(2) + "\n");
  }
  if (!flags.out.empty()) {
    write_file_atomically(flags.out,
                          report::pipeline_page(forecast, planned.title, planned.memory));
  }
  if (!flags.still.empty()) {
    const std::string words = fmt::format("{} in {} stages, {}", planned.options.recipe.model,
                                          forecast.stages.size(), in_words(forecast));
    write_file_atomically(flags.still,
                          report::pipeline_still(report::timeline_of(forecast, words)));
  }
}

void say_where(const PipelineFlags& flags) {
  if (flags.out.empty()) return;
  fmt::print("wrote {}; open it in a browser\n", on_one_line(flags.out.string()));
}

/// A step of a run.
int show_trace(const PipelineFlags& flags) {
  const report::TracedPipeline run = report::read_pipeline(flags.from);
  const int steps = static_cast<int>(run.steps.size());
  if (flags.step >= steps) {
    throw UsageError(fmt::format("--step {}: the trace has {} step{}, which count from 0",
                                 flags.step, steps, steps == 1 ? "" : "s"));
  }
  const int step = flags.step < 0 ? run.typical_step() : flags.step;
  const std::string source = on_one_line(flags.from.string());
  if (run.left_out > 0) {
    print_warning(fmt::format("{} was full: steps at its end are missing", source));
  }
  fmt::print("{}\n\n{}\n{}\n", source, to_text(traced_table(run, step)), in_words(run, step));
  if (!flags.json.empty()) {
    write_file_atomically(flags.json, to_json(run, step).dump(2) + "\n");
  }
  if (!flags.out.empty()) write_file_atomically(flags.out, traced_page(run, step, source));
  if (!flags.still.empty()) {
    write_file_atomically(flags.still,
                          report::pipeline_still(timeline_of(run, step, in_words(run, step))));
  }
  say_where(flags);
  return 0;
}

int run_pipeline(const PipelineFlags& flags, const CLI::App& command) {
  const train::TrainOptions options = resolve(flags.train);
  Outputs outputs(command, flags.force);
  outputs.reads("--from", flags.from);
  outputs.writes("--json", flags.json);
  outputs.writes("--out", flags.out);
  outputs.writes("--still", flags.still);
  if (!flags.from.empty()) return show_trace(flags);
  if (flags.link > 0 && !flags.measures) {
    throw UsageError("--link counts in seconds, and --balance planned knows none; leave one out");
  }
  const Planned planned = plan(flags, options);
  const Forecast& forecast = planned.forecast;
  fmt::print("{}\n\n{}\n{}\n", planned.title,
             to_text(train::stage_table(forecast.stages, forecast.measured)), in_words(forecast));
  write_files(flags, planned);
  if (!planned.fits()) throw Error(planned.memory + "; take more stages or a smaller batch");
  if (!planned.memory.empty()) fmt::print("{}\n", planned.memory);
  say_where(flags);
  return 0;
}

}  // namespace

void add_pipeline_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<PipelineFlags>();
  flags->train.model = "resnet18-cifar";
  CLI::App* command = app.add_subcommand(
      "pipeline", "cut a model into stages, and say how fast they are and whether they fit");
  add_pipeline_flags(*command, *flags);
  command->callback([flags, command, &action] {
    action = {[=] { return run_pipeline(*flags, *command); },
              [flags] { return values_of(resolve(flags->train)); }};
  });
}

}  // namespace ringlet::app
