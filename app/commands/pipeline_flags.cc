#include "app/commands/pipeline_flags.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "app/cli/checks.h"
#include "app/cli/error_exit.h"
#include "app/cli/option_flags.h"
#include "app/cli/outputs.h"
#include "app/cli/stage_devices.h"
#include "app/cli/usage.h"
#include "app/commands/all_reduce_bench_flags.h"
#include "bench/simulation/quantities.h"
#include "data/picture_spec.h"
#include "train/recipe/models.h"
#include "train/recipe/recipe_options.h"
#include "train/setup/pass_size.h"

namespace ringlet::app {

namespace {

constexpr const char* kModelCut = "What is cut";
constexpr const char* kStagesCut = "How it is cut";
constexpr const char* kStageDevices = "Devices";
constexpr const char* kPipelineFiles = "Files";
constexpr int kMostStages = 1024;

std::optional<int> whole(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// "3x224x224"
std::optional<std::array<int, 3>> parse_image(std::string_view text) {
  std::array<int, 3> extents{};
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::size_t sign = text.find('x');
    if ((sign == std::string_view::npos) != (i + 1 == extents.size())) return {};
    const auto extent = whole(text.substr(0, sign));
    if (!extent || *extent < 1 || *extent > data::kLargestImageSize) return {};
    extents[i] = *extent;
    text.remove_prefix(sign == std::string_view::npos ? text.size() : sign + 1);
  }
  return extents;
}

CLI::Validator image_in_words() {
  return CLI::Validator(
      [](const std::string& text) {
        return parse_image(text)
                   ? std::string()
                   : fmt::format(
                         "'{}' is no image: channels, height and width, such as 3x224x224, "
                         "each up to {}",
                         text, data::kLargestImageSize);
      },
      "");
}

CLI::Validator rate_in_words() {
  return CLI::Validator(
      [](const std::string& text) {
        return bench::parse_rate(text)
                   ? std::string()
                   : fmt::format("'{}' is no rate such as 25M or 50G, in bytes a second", text);
      },
      "");
}

CLI::Validator stages_in_words() {
  const CLI::Validator number = whole_number(1, kMostStages);
  return CLI::Validator(
      [number](std::string& text) -> std::string { return is_number(text) ? number(text) : ""; },
      "");
}

/// Those that the stages were given by hand.
std::vector<DeviceId> written_devices(const nn::Stages& stages, int replicas) {
  std::vector<DeviceId> devices;
  for (const nn::StageCut& stage : stages) {
    const std::vector<DeviceId> own = devices_in(stage.devices);
    if (std::ssize(own) != replicas) {
      throw UsageError(fmt::format(
          "{} has {} device{} ({}), and there {} replica{}; give it as many", in_words(stage),
          own.size(), own.size() == 1 ? "" : "s", stage.devices,
          replicas == 1 ? "is 1" : fmt::format("are {}", replicas), replicas == 1 ? "" : "s"));
    }
    devices.insert(devices.end(), own.begin(), own.end());
  }
  for (const DeviceId& device : devices) {
    if (device.kind == devices.front().kind) continue;
    throw UsageError(
        fmt::format("--stages names {} and {}: costs are known of one kind of device; take one",
                    devices.front().to_string(), device.to_string()));
  }
  return devices;
}

/// A trace says itself what was cut and how.
void add_trace_flags(CLI::App& command, PipelineFlags& flags) {
  CLI::Option* from =
      command
          .add_option("--from", flags.from,
                      "show a step of a run, from its trace, in place of a forecast")
          ->type_name("TRACE")
          ->group(kPipelineFiles);
  for (const char* flag :
       {"--model",     "--image",    "--classes",       "--batch-size",     "--optimizer",
        "--precision", "--stages",   "--micro-batches", "--pipeline",       "--recompute",
        "--balance",   "--replicas", "--device",        "--threads",        "--layout",
        "--memory",    "--link",     "--loss",          "--embedding-size", "--sample-rate"}) {
    from->excludes(command.get_option(flag));
  }
  command.add_option("--step", flags.step, "of the trace, from 0 [one of middle length]")
      ->transform(whole_number(0))
      ->needs(from)
      ->type_name("N")
      ->group(kPipelineFiles);
}

}  // namespace

void add_pipeline_flags(CLI::App& command, PipelineFlags& flags) {
  add_model_flag(command, flags.train);
  command.get_option("--model")->group(kModelCut);
  command
      .add_option("--image", flags.image,
                  "channels, height and width of what it sees [what the model was made for]")
      ->check(image_in_words())
      ->type_name("CxHxW")
      ->group(kModelCut);
  command
      .add_option("--classes", flags.classes,
                  "numbers that it answers with [what the model was made for]")
      ->transform(whole_number(1))
      ->type_name("N")
      ->group(kModelCut);
  add_recipe_flags(command, flags.train, kModelCut,
                   {"batch_size", "optimizer", "loss", "embedding_size", "sample_rate"});
  add_precision_flags(command, flags.train, kModelCut);
  command
      .add_option("--stages", flags.stages,
                  "how many, or the first and the last unit of each: conv1..layer2,layer3..fc; "
                  "each may end in a device: layer3..fc=cuda:1")
      ->check(stages_in_words())
      ->capture_default_str()
      ->type_name("N|FIRST..LAST,...")
      ->group(kStagesCut);
  command
      .add_option("--micro-batches", flags.micro_batches,
                  "parts that a replica's share of a batch goes through the stages in [4 for each "
                  "stage, on processors of 16 samples or a multiple]")
      ->transform(whole_number(1))
      ->type_name("N")
      ->group(kStagesCut);
  using train::PipelineSchedule;
  add_flags(command, flags, kStagesCut,
            {train::choice_option("pipeline", &PipelineFlags::schedule,
                                  {{"naive", PipelineSchedule::naive},
                                   {"gpipe", PipelineSchedule::gpipe},
                                   {"1f1b", PipelineSchedule::one_f_one_b}},
                                  {.help = "the order of forwards and backwards"}),
             train::choice_option("recompute", &PipelineFlags::recompute,
                                  {{"none", false}, {"stage", true}},
                                  {.help = "what a stage keeps of a micro-batch: all, or its input "
                                           "alone, to run the forward again"}),
             train::choice_option("balance", &PipelineFlags::measures,
                                  {{"measured", true}, {"planned", false}},
                                  {.help = "what units cost: their times on this device, or the "
                                           "dry run's operations and bytes"})});
  add_run_flags(command, flags.train, kStageDevices, {"replicas", "device", "threads", "layout"});
  command.get_option("--device")->check(device_name());
  command
      .add_option("--memory", flags.memory,
                  "bytes of each device, in powers of two: 900M, 16G [what is known of it]")
      ->transform(size_in_bytes())
      ->type_name("SIZE")
      ->group(kStageDevices);
  command
      .add_option_function<std::string>(
          "--link", [&flags](const std::string& text) { flags.link = *bench::parse_rate(text); },
          "bytes a second between two devices, in powers of ten: 25M, 50G [a copy's on this "
          "device]")
      ->check(rate_in_words())
      ->type_name("RATE")
      ->group(kStageDevices);
  add_flags(command, flags, kPipelineFiles,
            {train::option("json", &PipelineFlags::json,
                           {.help = "write the figures", .value_name = "FILE"}),
             train::option("out", &PipelineFlags::out,
                           {.help = "write a page with the timeline; it needs no network",
                            .value_name = "FILE"}),
             train::option("still", &PipelineFlags::still,
                           {.help = "write the timeline alone (SVG)", .value_name = "FILE"})});
  add_trace_flags(command, flags);
  add_force_flag(command, flags.force)->group(kPipelineFiles);
}

int number_of_stages(const PipelineFlags& flags) {
  return is_number(flags.stages) ? *whole(flags.stages) : 0;
}

train::CutModel model_of(const PipelineFlags& flags, const train::TrainOptions& options,
                         std::int64_t samples) {
  train::ReplicaSpec spec{.recipe = options.recipe,
                          .input = train::usual_input(options.recipe.model),
                          .max_train_batch = samples,
                          .fuse = options.execution.fuse};
  if (!flags.image.empty()) {
    const auto [channels, height, width] = *parse_image(flags.image);
    spec.input.channels = channels;
    spec.input.height = height;
    spec.input.width = width;
  }
  if (flags.classes > 0) spec.input.outputs = static_cast<int>(flags.classes);
  const DeviceKind kind = options.execution.devices.front().kind;
  spec.max_eval_batch =
      train::pass_size(kind == DeviceKind::cuda ? 2000 : 250,
                       std::int64_t{spec.input.channels} * spec.input.height * spec.input.width);
  spec.layout = train::choose_layout(options.execution.layout, kind, samples, spec);
  return checked([&] {
    require_precision(spec, kind, options.execution.emulate_precision);
    check_belongings(spec.recipe, true, false);
    return train::make_cut_model(spec, {}, {.ranks = flags.train.replicas});
  });
}

std::vector<DeviceId> devices_of(const PipelineFlags& flags, const nn::Stages& stages) {
  const int replicas = flags.train.replicas;
  if (!stages.front().devices.empty()) {
    if (flags.train.given.count("device") > 0) {
      throw UsageError("--stages names devices, and so does --device; leave one of them out");
    }
    return written_devices(stages, replicas);
  }
  RawFlags ranks = flags.train;
  ranks.replicas = replicas * static_cast<int>(stages.size());
  return devices_of(ranks);
}

}  // namespace ringlet::app
