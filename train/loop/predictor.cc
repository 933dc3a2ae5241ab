#include "train/loop/predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/files/atomic_file.h"
#include "data/memory_dataset.h"
#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "nn/cast.h"
#include "nn/last_layer.h"
#include "nn/plan.h"
#include "train/batches/batch_source.h"
#include "train/loop/as_rows.h"
#include "train/loop/replica.h"
#include "train/recipe/models.h"
#include "train/recipe/precision_support.h"
#include "train/setup/pass_size.h"

namespace ringlet::train {

namespace {

namespace fs = std::filesystem;

ModelInfo require_info(const fs::path& file) {
  std::optional<ModelInfo> info = read_model_info(file);
  if (info) return *std::move(info);
  throw FileError(file.string() +
                  " does not say what model it holds: it is of a task of a program's own, or was "
                  "not written by Ringlet's train; give the Predictor the run's ReplicaSpec, or a "
                  "ModelInfo of it");
}

/// Passes over the whole set, in its order.
data::BatchSchedule in_order(std::int64_t samples, std::int64_t batch) {
  return [=](std::int64_t k) -> std::optional<data::BatchRequest> {
    if (k * batch >= samples) return {};
    return data::BatchRequest{0, k * batch, std::min((k + 1) * batch, samples)};
  };
}

ReplicaSpec spec_of(const ModelInfo& info) {
  ReplicaSpec spec;
  spec.recipe.model = info.model;
  spec.input = info.input();
  return spec;
}

data::LoaderOptions loader_of(const ModelInfo& info) {
  data::LoaderOptions loader;
  loader.mean = info.mean;
  loader.deviation = info.deviation;
  return loader;
}

/// Floats of a sample.
std::int64_t numbers_of(const nn::BatchSpec& batch) {
  std::int64_t numbers = 0;
  for (const nn::TensorSpec& tensor : batch.tensors) {
    if (tensor.dtype == DType::f32 && !tensor.constant) numbers += tensor.shape.count_per_sample();
  }
  return numbers;
}

}  // namespace

Predictor::Predictor(Device& device, const fs::path& file, const PredictorOptions& options)
    : Predictor(device, file, require_info(file), options) {}

Predictor::Predictor(Device& device, const fs::path& file, const ModelInfo& info,
                     const PredictorOptions& options)
    : Predictor(device, file, spec_of(info), loader_of(info), options) {
  info_ = info;
}

Predictor::Predictor(Device& device, const fs::path& file, const ReplicaSpec& spec,
                     const data::LoaderOptions& loader, const PredictorOptions& options)
    : device_(device),
      spec_(spec),
      mean_(loader.mean),
      deviation_(loader.deviation),
      task_(task_of(spec)),
      batch_(pass_size(options.batch, numbers_of(batch_of(spec, 1)))),
      stop_requested_(options.stop_requested) {
  require(batch_ >= 1, "predictor", "a pass needs at least one sample");
  spec_.recipe.precision = options.precision;
  spec_.layout = layout_ = choose_layout(options.layout, device.id().kind, batch_, spec_);
  model_ = make_model(spec_);
  const nn::Registry registry = nn::register_model(*model_);
  if (options.features) find_head(registry);
  require_precision(options.precision, device.id().kind, layout_, registry.parameters,
                    options.emulate_precision);
  const HostState weights =  // before memory for them is asked for
      load_model(file, registry, Head::as_in_file, options.nonfinite);
  const nn::Plan plan =
      nn::plan_training(registry, batch_of(spec_, 1), pass_of(*task_, *model_, true));
  const nn::Pass answer = [this](nn::Tape& tape, const nn::Batch& batch) {
    const nn::Variable output = task_->output(tape, *model_, batch);
    if (head_.empty()) width_ = output.shape().count_per_sample();
    return nn::cast(output, DType::f32);
  };
  const std::int64_t bytes =
      nn::plan_evaluation(registry, dry_batch_of(device, spec_, batch_), answer);
  parameters_ = std::make_unique<nn::Parameters>(device, registry, plan, 0);
  activations_ = std::make_unique<Arena>(device, bytes);
  tape_ = std::make_unique<nn::Tape>(device, *activations_, registry.parameters);
  upload(device, weights, *parameters_, {});
  parameters_->narrow_values(device.compute());
}

void Predictor::find_head(const nn::Registry& registry) {
  const nn::LastLayer last(registry);
  require(last.weight() != nullptr && last.weight()->shape.rank() == 2,
          "PredictorOptions::features", "the model's last layer is no product with a matrix");
  head_ = last.name();
  width_ = last.weight()->shape[1];
}

std::vector<float> Predictor::logits(const std::shared_ptr<const data::Dataset>& dataset) {
  std::vector<float> all;
  if (dataset != nullptr) all.reserve(static_cast<std::size_t>(dataset->size() * width_));
  each_pass(dataset, [&all](std::span<const float> logits) {
    all.insert(all.end(), logits.begin(), logits.end());
  });
  return all;
}

void Predictor::each_pass(const std::shared_ptr<const data::Dataset>& dataset,
                          const std::function<void(std::span<const float> logits)>& take) {
  require(dataset != nullptr, "predictor", "there is no data set");
  require(take != nullptr, "predictor", "each_pass() has no function to give the outputs to");
  const nn::ModelInput& input = spec_.input;
  const bool fits = dataset->channels() == input.channels && dataset->height() == input.height &&
                    dataset->width() == input.width;
  if (!fits) {
    throw ContractError(
        fmt::format("the model is for images of {} x {} x {}, but {} has {} x {} x {}",
                    input.channels, input.height, input.width, dataset->name(), dataset->channels(),
                    dataset->height(), dataset->width()));
  }
  const std::int64_t batch = std::min(batch_, dataset->size());
  data::LoaderOptions loader{.mean = mean_, .deviation = deviation_, .max_batch = batch};
  loader.layout = batch_layout(layout_);
  if (dataset->size() <= batch) loader.depth = 0;  // one pass needs no thread to prepare the next
  const auto batches = make_batch_source(device_, dataset, in_order(dataset->size(), batch),
                                         {.loader = loader, .shuffle = false});
  while (const data::Batch* pass = batches->next()) {
    take(run_pass(*dataset, *pass));
    stop_if(stop_requested_);
  }
}

std::vector<float> Predictor::logits(std::span<const std::uint8_t> images) {
  const nn::ModelInput& input = spec_.input;
  const std::int64_t pixels = std::int64_t{input.channels} * input.height * input.width;
  const auto bytes = static_cast<std::int64_t>(images.size());
  require(pixels > 0 && bytes % pixels == 0, "predictor", "the images are not of the model's size");
  if (images.empty()) return {};
  const std::vector<std::int32_t> no_targets(static_cast<std::size_t>(bytes / pixels), 0);
  return logits(std::make_shared<const data::MemoryDataset>(
      data::DatasetInfo{.name = "the images",
                        .channels = input.channels,
                        .height = input.height,
                        .width = input.width,
                        .target_names = {"any"}},
      std::vector<std::uint8_t>(images.begin(), images.end()), no_targets));
}

std::vector<float> Predictor::run_pass(const data::Dataset& dataset, const data::Batch& batch) {
  tape_->begin({.training = false});
  nn::Batch named(activations_of(spec_.recipe.precision));
  const std::int64_t n = batch.n;
  const auto add = [&](std::string_view name, float* data, const Shape& shape, Layout layout) {
    named.add(name, tape_->constant(View(data, shape, DType::f32, layout)));
  };
  if (dataset.pixels() > 0) {
    add(nn::kImages, batch.images, {n, dataset.channels(), dataset.height(), dataset.width()},
        layout_);
  }
  for (std::size_t i = 0; i < dataset.fields().size(); ++i) {
    const data::Field& field = dataset.fields()[i];
    add(field.name, batch.fields[i], batch_shape(field, n), Layout::nchw);
  }
  if (!head_.empty()) return features_of(named, n);
  return as_rows(device_.compute(),
                 nn::cast(task_->output(*tape_, *model_, named), DType::f32).value());
}

/// Of the operation before the head's first one, whose output the head has just taken.
std::vector<float> Predictor::features_of(const nn::Batch& batch, std::int64_t samples) {
  std::vector<float> rows;
  View before;
  tape_->set_inspector([&](const char* layer, const char*, const View& value) {
    if (rows.empty() && !before.absent() && head_ == layer) {
      Tensor wide;
      if (is_narrow(before.dtype())) {
        wide = Tensor(device_, before.shape(), DType::f32, before.layout());
        ringlet::cast(device_.compute(), before, wide);
      }
      rows = as_rows(device_.compute(), wide.view().absent() ? ConstView(before) : wide.view());
    }
    before = value;
  });
  (void)task_->output(*tape_, *model_, batch);
  tape_->set_inspector({});
  require(std::ssize(rows) == samples * width_, "PredictorOptions::features",
          "the model's last layer does not take what the operation before it gives");
  return rows;
}

}  // namespace ringlet::train
