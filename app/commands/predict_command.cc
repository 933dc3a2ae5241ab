// ringlet predict
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "app/cli/checks.h"
#include "app/cli/commands.h"
#include "app/cli/flags.h"
#include "app/cli/option_flags.h"
#include "app/cli/outputs.h"
#include "app/cli/signals.h"
#include "app/cli/usage.h"
#include "app/commands/checkpoint.h"
#include "app/commands/class_match.h"
#include "app/commands/embeddings_file.h"
#include "app/commands/predict.h"
#include "base/one_line.h"
#include "data/image_folder.h"
#include "data/open_dataset.h"
#include "train/files/load_model.h"
#include "train/recipe/precision_support.h"
#include "train/task/classification_logits.h"

namespace ringlet::app {

namespace {

struct PredictFlags {
  RawFlags raw;
  std::filesystem::path checkpoint;
  PredictImages images;
  std::string split = "test";
  std::filesystem::path out;
  bool allow_nonfinite = false;
  bool force = false;
};

train::PredictorOptions how_to_predict(const PredictFlags& flags) {
  const auto precision =
      given_or<std::string>(flags.raw, "precision", name_of(train::Precision::f32));
  return {.precision = train::parse_precision(precision),
          .emulate_precision = flags.raw.options.execution.emulate_precision,
          .nonfinite = nonfinite_of(flags.allow_nonfinite),
          .stop_requested = stop_noted};
}

std::unique_ptr<Device> open_predictors_device(const PredictFlags& flags) {
  const train::Execution& execution = flags.raw.options.execution;
  return open_device(DeviceId::parse(flags.raw.device),
                     {.threads = execution.threads,
                      .bf16 = train::bf16_products(execution.emulate_precision),
                      .tf32 = how_to_predict(flags).precision == train::Precision::tf32});
}

/// Throws UsageError where there would be nothing to tell.
void require_classes_or_file(const Checkpoint& checkpoint, const PredictFlags& flags) {
  if (!gives_embeddings(checkpoint) || !flags.images.embeddings.empty()) return;
  throw UsageError(fmt::format(
      "{} gives embeddings of {} numbers, and no classes; write them with --embeddings FILE.npy",
      checkpoint.file.string(), checkpoint.info->embedding));
}

/// A classifier's embeddings are what its last layer takes.
train::PredictorOptions how_to_predict(const PredictFlags& flags, const Checkpoint& checkpoint) {
  train::PredictorOptions how = how_to_predict(flags);
  how.features = !flags.images.embeddings.empty() && !gives_embeddings(checkpoint);
  return how;
}

void say_saved(const std::filesystem::path& embeddings, const Checkpoint& checkpoint,
               std::int64_t numbers, bool has_names) {
  fmt::print("saved {}: a row of {} numbers for each image, in their order{}\n",
             on_one_line(embeddings.string()), numbers,
             gives_embeddings(checkpoint) ? "" : "; they are what the last layer takes");
  if (has_names) {
    fmt::print("saved {}: their names, a line each\n",
               on_one_line(names_file_of(embeddings).string()));
  }
}

/// Before anything is opened: a name that is taken must not cost the work.
void claim_embeddings(const PredictFlags& flags, Outputs& outputs) {
  const std::filesystem::path& embeddings = flags.images.embeddings;
  outputs.reads("--checkpoint", train::model_file_of(flags.checkpoint));
  if (embeddings.empty()) return;
  outputs.writes("--embeddings", embeddings);
  outputs.writes("--embeddings", names_file_of(embeddings));
}

int predict_of_images(const PredictFlags& flags, const CLI::App& command) {
  Outputs outputs(command, flags.force);
  for (const auto& image : flags.images.files) outputs.reads("IMAGE", image);
  claim_embeddings(flags, outputs);
  const Checkpoint checkpoint = open_checkpoint(flags.checkpoint);
  require_classes_or_file(checkpoint, flags);
  const RawFlags raw = with_model_of(flags.raw, checkpoint);
  const bool assumed = !checkpoint.info;
  const train::ModelInfo info =
      assumed ? assume_info(checkpoint, resolve(raw).recipe, nullptr) : *checkpoint.info;
  PredictImages request = flags.images;
  request.how = how_to_predict(flags, checkpoint);
  const auto device = open_predictors_device(flags);
  const std::int64_t numbers =
      predict_images(*device, checkpoint.file, info, assumed, request, outputs);
  if (!request.embeddings.empty()) say_saved(request.embeddings, checkpoint, numbers, true);
  return 0;
}

int predict_of_data(const PredictFlags& flags, const CLI::App& command) {
  Outputs outputs(command, flags.force);
  const Checkpoint checkpoint = open_checkpoint(flags.checkpoint);
  require_classes_or_file(checkpoint, flags);
  const std::filesystem::path& embeddings = flags.images.embeddings;
  train::TrainOptions options =
      resolve(with_data_of(with_model_of(flags.raw, checkpoint), checkpoint));
  options.only_test = checkpoint.info && flags.split == "test";
  outputs.reads_data(options);
  claim_embeddings(flags, outputs);
  outputs.writes("--out", flags.out);
  const data::Splits data = open_data_of(checkpoint, flags.raw, options);
  print_notes(data);
  const auto& dataset = flags.split == "train" ? data.train : data.test;
  const train::ModelInfo info = checkpoint.info
                                    ? *checkpoint.info
                                    : assume_info(checkpoint, options.recipe, data.train.get());
  const auto device = open_predictors_device(flags);
  if (!embeddings.empty()) {
    const std::int64_t numbers = write_embeddings(*device, checkpoint.file, info, dataset,
                                                  how_to_predict(flags, checkpoint), embeddings);
    say_saved(embeddings, checkpoint, numbers, !data::picture_names(*dataset).empty());
    return 0;
  }
  const ClassMatch match = match_classes(checkpoint, dataset);
  const train::Evaluation result =
      predict_dataset(*device, checkpoint.file, info, match.set, how_to_predict(flags), flags.out);
  print_answers(checkpoint, info.model, *dataset, match, "", result);
  if (!flags.out.empty()) fmt::print("\nsaved {}\n", on_one_line(flags.out.string()));
  return 0;
}

/// Images or a data set: the flags of the one cannot be combined with the other.
void keep_apart(CLI::App& command) {
  CLI::Option* images = command.get_option("IMAGE");
  CLI::Option* data = command.get_option("--data");
  for (const char* flag : {"--data", "--split", "--out", "--data-dir", "--synthetic-train",
                           "--synthetic-test", "--skip-broken"}) {
    images->excludes(command.get_option(flag));
  }
  for (const char* flag : {"--json", "--top", "--invert", "--levels", "--save-input"}) {
    data->excludes(command.get_option(flag));
  }
}

int predict(const PredictFlags& flags, const CLI::App& command) {
  note_stop_signals();
  if (!flags.images.files.empty()) return predict_of_images(flags, command);
  if (flags.raw.recipe.contains("data")) return predict_of_data(flags, command);
  throw UsageError("'ringlet predict' needs images, or a data set: IMAGE... or --data NAME");
}

void add_image_flags(CLI::App& command, PredictFlags& flags) {
  command
      .add_option("IMAGE", flags.images.files,
                  "pictures (PNG, JPEG, WebP, BMP, PGM, PPM), or folders of them")
      ->type_name("IMAGE|DIR...");
  add_flags(
      command, flags.images, "Images",
      {train::option("top", &PredictImages::top,
                     {.help = "how many classes to show of each", .range = train::from(1)}),
       train::choice_option("invert", &PredictImages::invert,
                            {{"auto", data::Invert::automatic},
                             {"on", data::Invert::on},
                             {"off", data::Invert::off}},
                            {.help = "swap dark and light; auto: where an image's border is light "
                                     "and that of the training images dark, or the other way "
                                     "round"}),
       train::choice_option("levels", &PredictImages::stretch, {{"auto", true}, {"off", false}},
                            {.help = "auto: where a picture had to be scaled, make its background "
                                     "as dark as that of the training images"}),
       train::option("json", &PredictImages::json, {.help = "one JSON document, for programs"}),
       train::option(
           "save_input", &PredictImages::save_input,
           {.help = "write each image as the model sees it (PGM, PPM)", .value_name = "DIR"})});
}

void add_dataset_flags(CLI::App& command, PredictFlags& flags) {
  add_data_flags(command, flags.raw);
  add_run_flags(command, flags.raw, kModelGroup, {"skip_broken"});
  command.get_option("--data")->description(fmt::format(
      "instead of images: {}, or {}", fmt::join(data::dataset_names(), ", "), data::kDataFolder));
  add_no_normalize_flag(command, flags.raw);
  add_allow_nonfinite_flag(command, flags.allow_nonfinite);
  add_flags(command, flags, kModelGroup,
            {train::option("split", &PredictFlags::split,
                           {.help = "which part of the data set",
                            .choices =
                                [] {
                                  return std::vector<std::string>{"test", "train"};
                                }}),
             train::option("out", &PredictFlags::out,
                           {.help = "write \"logits\" [N, K] and \"labels\" [N] (safetensors)",
                            .value_name = "FILE"})});
}

void add_device_flags(CLI::App& command, RawFlags& flags) {
  add_run_flags(command, flags, "Device", {"device", "threads"});
  command.get_option("--device")->description("where the model runs")->check(device_name());
  command.get_option("--threads")->description("CPU threads");
}

}  // namespace

void add_predict_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<PredictFlags>();
  flags->raw.options.allow_unseen_targets = true;  // the model has its classes already
  CLI::App* command =
      app.add_subcommand("predict", "classify images, or a data set, with a trained model");
  add_checkpoint_flag(*command, flags->checkpoint);
  add_image_flags(*command, *flags);
  add_dataset_flags(*command, *flags);
  add_device_flags(*command, flags->raw);
  add_precision_flags(*command, flags->raw, "Device");
  command
      ->add_option(
          "--embeddings", flags->images.embeddings,
          "write embeddings, a row an image (f32, for numpy.load), instead of classes, and the "
          "pictures' names into FILE.txt; of a classifier what its last layer takes")
      ->type_name("FILE.npy")
      ->group("Files");
  for (const char* flag : {"--out", "--top", "--json", "--save-input"}) {
    command->get_option("--embeddings")->excludes(command->get_option(flag));
  }
  keep_apart(*command);
  add_force_flag(*command, flags->force)->group("Files");
  command->callback([flags, command, &action] {
    note_data_flags(*command, flags->raw);
    action = [=] { return predict(*flags, *command); };
  });
}

}  // namespace ringlet::app
