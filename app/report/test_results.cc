#include "app/report/test_results.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/files/atomic_file.h"
#include "base/processors.h"
#include "data/image_folder.h"
#include "data/open_dataset.h"
#include "data/renumbered_dataset.h"
#include "train/files/model_info.h"
#include "train/loop/predictor.h"
#include "train/task/classification_logits.h"

namespace ringlet::app::report {

namespace {

constexpr std::size_t kShownMistakes = 24;

/// Where --data-dir was, if that is on this machine.
std::string directory_of(const RunFacts& facts) {
  std::error_code error;
  const std::string directory = facts.text("/data/directory");
  return std::filesystem::is_directory(directory, error) ? directory : "";
}

/// What --data was; of a folder, where it is now.
std::string current_data(const RunFolder& run, const std::string& data_dir) {
  std::string name = run.data_name();
  const bool is_folder = data::find_dataset(name) == nullptr;
  if (is_folder && !data_dir.empty()) return data_dir;
  if (data::is_dataset(name)) return name;
  throw FileError(fmt::format(
      "the run's data were in the folder '{}', which is not here; say with --data-dir where they "
      "are now",
      name));
}

/// The run's data as it lies here now.
data::Splits data_of(const RunFolder& run, const std::string& data_dir, const StopRequest& stop) {
  const RunFacts facts = run.facts.value_or(RunFacts());
  const std::string name = current_data(run, data_dir);
  data::OpenOptions options{.directory = data_dir.empty() ? directory_of(facts) : data_dir,
                            .allow_unseen_targets = true,  // as the run has allowed them
                            .train_alone = run.recipe && !run.recipe->verify.empty(),
                            .stop_requested = stop};
  const auto model = run.weights ? train::read_model_info(*run.weights) : std::nullopt;
  if (model && data::is_picture_folder(name)) {
    options.pictures.image_size = model->height;
    options.pictures.exif = model->exif;
    options.pictures.split = model->split;
    options.skip_broken = model->skip_broken;
    if (run.recipe) options.pictures.crop_from = run.recipe->crop_from;
  }
  const data::NamedDataset* named = data::find_dataset(name);
  if (named != nullptr && named->needs == data::DataNeeds::sizes) {
    const double train = facts.number("/data/synthetic_train");
    const double test = facts.number("/data/synthetic_test");
    if (!std::isfinite(train) || !std::isfinite(test)) {
      throw FileError("run.json does not say how many images were drawn");
    }
    options.synthetic_train = static_cast<std::int64_t>(train);
    options.synthetic_test = static_cast<std::int64_t>(test);
  }
  data::Splits splits = data::open_dataset(name, options);
  if (run.recipe && !splits.train->is_known_as(run.data_hash)) {
    throw FileError(splits.train->description() + " is other data than the run was trained on");
  }
  return splits;
}

/// Without a state nobody knows the hash of the run's data.
std::shared_ptr<const data::Dataset> under_classes_of(const train::ModelInfo& info,
                                                      std::shared_ptr<const data::Dataset> test) {
  if (test->target_names() == info.output_names) return test;
  const auto indices = data::indices_of(test->target_names(), info.output_names);
  if (!indices) {
    throw FileError(test->name() + " has the classes " + data::some_of(test->target_names()) +
                    ", and the model " + data::some_of(info.output_names));
  }
  return std::make_shared<const data::RenumberedDataset>(std::move(test), info.output_names,
                                                         *indices);
}

}  // namespace

TestResults test_model(const RunFolder& run, const std::string& data_dir, const StopRequest& stop) {
  if (!run.weights) {
    throw FileError(run.path.string() + " holds neither model.safetensors nor a state");
  }
  const data::Splits splits = data_of(run, data_dir, stop);
  const auto device = open_device({}, {.threads = usable_processors()});
  train::Predictor predictor(*device, *run.weights, {.stop_requested = stop});
  if (predictor.info().embedding > 0) {
    throw FileError(run.weights->string() +
                    " gives embeddings, and no logits; 'ringlet eval' measures them against the "
                    "classes' centres, 'ringlet verify' by pairs");
  }
  const auto test = under_classes_of(predictor.info(), splits.test);
  const std::vector<float> logits = predictor.logits(test);
  if (train::first_nonfinite(logits, test->target_values()) >= 0) {
    throw FileError(run.weights->string() + " gives numbers that are not finite");
  }
  return tally(test, logits, kShownMistakes);
}

}  // namespace ringlet::app::report
