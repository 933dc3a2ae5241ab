#include "app/commands/training_bench.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/cli/signals.h"
#include "app/cli/version.h"
#include "train/recipe/version.h"
#include "train/telemetry/device_report.h"

namespace ringlet::app {

namespace {

nlohmann::json machine_json(const train::Execution& execution) {
  const train::DeviceReport report =
      on_gpu(execution) ? train::survey_devices() : train::survey_processor();
  nlohmann::json machine{{"processor", report.processor},
                         {"cores", report.cores},
                         {"instruction_set", report.instruction_set},
                         {"ringlet", train::kVersion}};
  const auto index = static_cast<std::size_t>(execution.devices.front().index);
  if (on_gpu(execution) && index < report.cuda.devices.size()) {
    machine["gpu"] = report.cuda.devices[index].name;
  }
  return machine;
}

}  // namespace

bool on_gpu(const train::Execution& execution) {
  return execution.devices.front().kind == DeviceKind::cuda;
}

void fill_batches(const RawFlags& flags, train::TrainOptions& options, std::int64_t batch) {
  if (!is_generated(options.recipe.data) || flags.given.count("synthetic_train") > 0) return;
  options.synthetic_train = std::max(batch, options.synthetic_train / batch * batch);
}

train::RunSetup make_bench_setup(train::TrainOptions options, const data::Splits& data, int ranks,
                                 comm::Group* group) {
  const std::int64_t images = data.train->size();
  std::int64_t& batch = options.recipe.batch_size;
  batch = std::min(batch, images);
  train::RunSetup setup = train::make_run_setup(options, data, ranks, {}, group);
  setup.partition.size = images / batch * batch;
  setup.stop_requested = stop_noted;
  return setup;
}

nlohmann::json training_settings_json(const train::RunSetup& setup) {
  const train::Recipe& recipe = setup.options.recipe;
  const train::Execution& execution = setup.options.execution;
  const data::Dataset& images = *setup.data.train;
  return {{"machine", machine_json(execution)},
          {"build", build_facts()},
          {"model", recipe.model},
          {"data", recipe.data},
          {"image_shape", {images.channels(), images.height(), images.width()}},
          {"train_images", images.size()},
          {"device", execution.devices.front().to_string()},
          {"tf32", execution.tf32},
          {"precision", name_of(recipe.precision)},
          {"threads", execution.threads},
          {"sync", execution.sync},
          {"grad_dtype", train::grad_dtype_name(recipe)},
          {"optimizer", recipe.optimizer},
          {"exact", recipe.exact},
          {"isa", name_of(detect_instruction_set())}};
}

}  // namespace ringlet::app
