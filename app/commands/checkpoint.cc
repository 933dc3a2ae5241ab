#include "app/commands/checkpoint.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "app/cli/error_exit.h"
#include "app/cli/usage.h"
#include "app/report/run_folder.h"
#include "base/data_error.h"
#include "base/files/json_text.h"
#include "comm/shared_text.h"
#include "data/fashion_mnist.h"
#include "data/open_dataset.h"
#include "train/files/centres.h"
#include "train/files/safetensors.h"
#include "train/files/state.h"
#include "train/recipe/models.h"
#include "train/setup/run_setup.h"

namespace ringlet::app {

namespace {

namespace fs = std::filesystem;

constexpr const char* kFileKey = "file";  // beside the names of a model's metadata
constexpr const char* kDataDirKey = "data-dir";
constexpr const char* kTestContentsKey = "test contents";
constexpr const char* kCentresFileKey = "centres' file";
constexpr const char* kCentresKey = "centres";

/// What a file that does not say it holds weights for: as its first layer's channels and its last
/// one's outputs say.
nn::ModelInput input_in(const fs::path& file, const std::string& model) {
  constexpr std::int64_t kMost = 1 << 16;
  nn::ModelInput input;  // of one channel, as Fashion-MNIST's
  const auto layers = train::make_model(model, input);
  const nn::Registry registry = nn::register_model(*layers);
  const auto channels = train::channels_in(file, registry);
  const auto classes = train::classes_in(file, registry);
  const nn::ModelInput usual = train::usual_input(model);
  if (channels == usual.channels) input = usual;
  if (classes && *classes >= 1 && *classes <= kMost) input.outputs = static_cast<int>(*classes);
  return input;
}

/// Whose mean and deviation colour pictures have, of weights that do not say it.
const char* usual_normalization(const std::string& model) {
  return model.starts_with("iresnet") ? "symmetric" : "imagenet";
}

/// What is known of a run; nothing where nothing can be read there.
report::RunFacts facts_of(const fs::path& run) {
  try {
    std::error_code error;
    if (!fs::is_regular_file(run / "run.json", error)) return {};
    return report::read_facts(run);
  } catch (const FileError&) {  // without it data are looked for in the usual folders
    return {};
  }
}

[[noreturn]] void contradict(const Checkpoint& checkpoint, const std::string& flag,
                             const std::string& holds) {
  throw UsageError(fmt::format("{} contradicts {}, which {}; leave the flag out", flag,
                               checkpoint.file.string(), holds));
}

}  // namespace

namespace {

/// What lies beside a model of embeddings.
void read_centres(Checkpoint& checkpoint) {
  const fs::path centres = train::centres_beside(checkpoint.file);
  if (!gives_embeddings(checkpoint) || centres.empty()) return;
  const train::CentresInfo known = train::read_centres_info(centres);
  checkpoint.centres = centres;
  checkpoint.scale = known.scale;
  checkpoint.info->output_names = known.names;
}

}  // namespace

std::string model_in_words(const fs::path& file, const train::ModelInfo& info, bool assumed) {
  const std::string name = on_one_line(file.string());
  if (!assumed) {
    return fmt::format("{}: {}, trained on {}", name, info.model, on_one_line(info.data));
  }
  std::string pixels = "pixels / 255";
  if (info.mean != 0) {
    const std::string as = info.channels == 1 ? "normalised as Fashion-MNIST's"
                           : usual_normalization(info.model) == std::string_view("imagenet")
                               ? "normalised as ImageNet's"
                               : "from -1 to 1";
    pixels = fmt::format("pixels {} (--no-normalize for pixels / 255)", as);
  }
  return fmt::format(
      "{} does not say what it holds: taken for {} (--model), classes by number, images of {} x {} "
      "x {}, {}",
      name, info.model, info.channels, info.height, info.width, pixels);
}

CLI::Option* add_checkpoint_flag(CLI::App& app, fs::path& checkpoint) {
  return app
      .add_option("--checkpoint,--init", checkpoint,
                  "the model (safetensors), or the folder of a run that holds it")
      ->required()
      ->type_name("FILE|DIR")
      ->group("Files");
}

void add_no_normalize_flag(CLI::App& app, RawFlags& flags) {
  app.get_option("--model")->description("which network [as the file says, else lenet]");
  app.add_flag_function(
         "--no-normalize", [&flags](std::int64_t on) { flags.recipe["normalize"] = on <= 0; },
         "only divide pixels by 255 [as the file says; lenet-d2l]")
      ->group(kModelGroup);
}

void add_allow_nonfinite_flag(CLI::App& app, bool& allow) {
  app.add_flag("--allow-nonfinite", allow,
               "look at a model whose numbers are NaN or infinite, which is refused else")
      ->group(kModelGroup);
}

train::NonFinite nonfinite_of(bool allow) {
  return allow ? train::NonFinite::taken : train::NonFinite::refused;
}

Checkpoint open_checkpoint(const fs::path& named, bool with_centres) {
  const fs::path file = train::model_file_of(named);
  Checkpoint checkpoint = read_checkpoint(file);
  if (with_centres) read_centres(checkpoint);
  warn_of_rounding(file);
  return checkpoint;
}

void warn_of_rounding(const fs::path& weights) {
  const std::string warning = train::rounding_of(weights);
  if (!warning.empty()) print_warning(warning);
}

Checkpoint open_checkpoint(const fs::path& named, comm::Group& group, double comm_timeout,
                           bool with_centres) {
  const auto read = [&named, with_centres] {
    return comm::to_text(to_plan(open_checkpoint(named, with_centres)));
  };
  return checkpoint_of(comm::plan_of(comm::from_first(group, "model's file", comm_timeout, read)));
}

Checkpoint read_checkpoint(const fs::path& file) {
  const report::RunFacts facts = facts_of(run_of(file.parent_path()));
  train::require_task(file, train::kClassification);  // Ringlet's commands know no other
  Checkpoint checkpoint{.file = file,
                        .info = train::read_model_info(file),
                        .data_dir = facts.text("/data/directory"),
                        .test_contents = facts.text("/data/test_contents")};
  return checkpoint;
}

comm::Plan to_plan(const Checkpoint& checkpoint) {
  comm::Plan plan{{kFileKey, checkpoint.file.string()},
                  {kDataDirKey, checkpoint.data_dir},
                  {kTestContentsKey, checkpoint.test_contents}};
  if (!checkpoint.info) return plan;
  if (!checkpoint.centres.empty()) {
    const nlohmann::json centres{checkpoint.scale, checkpoint.info->output_names};
    plan.emplace_back(kCentresFileKey, checkpoint.centres.string());
    plan.emplace_back(kCentresKey,
                      centres.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  for (const auto& text : train::to_metadata(*checkpoint.info)) plan.push_back(text);
  return plan;
}

Checkpoint checkpoint_of(const comm::Plan& plan) {
  train::Metadata texts(plan.begin(), plan.end());
  const fs::path file = texts[kFileKey];
  Checkpoint checkpoint{.file = file,
                        .info = train::parse_model_info(file, texts),
                        .data_dir = texts[kDataDirKey],
                        .test_contents = texts[kTestContentsKey]};
  if (checkpoint.info && texts.contains(kCentresKey)) {
    const nlohmann::json centres = parse_json(texts[kCentresKey]);
    checkpoint.centres = texts[kCentresFileKey];
    checkpoint.scale = centres.at(0);
    checkpoint.info->output_names = centres.at(1).get<std::vector<std::string>>();
  }
  return checkpoint;
}

RawFlags with_model_of(const RawFlags& flags, const Checkpoint& checkpoint) {
  if (!checkpoint.info) return flags;
  const train::ModelInfo& info = *checkpoint.info;
  RawFlags changed = flags;
  if (!flags.recipe.contains("model")) {
    changed.recipe["model"] = changed.model = info.model;
  } else if (flags.model != info.model) {
    contradict(checkpoint, "--model " + flags.model, "holds a " + info.model);
  }
  if (info.embedding > 0) {  // without a margin, which only training has
    changed.recipe["loss"] = std::string("normface");
    changed.recipe["embedding_size"] = std::int64_t{info.embedding};
    if (checkpoint.scale > 0) changed.recipe["scale"] = checkpoint.scale;
  }
  const bool as_it_is = info.mean == 0 && info.deviation == 1;
  if (given_or(flags, "normalize", !as_it_is) == as_it_is) {
    contradict(checkpoint, as_it_is ? "no-normalize = false" : "--no-normalize",
               as_it_is ? "was trained on pixels as they are" : "was trained on normalised pixels");
  }
  return changed;
}

RawFlags with_data_of(const RawFlags& flags, const Checkpoint& checkpoint) {
  RawFlags changed = flags;
  if (!checkpoint.info) {
    const std::string data = given_or(flags, "data", std::string());
    if (data::takes_image_size(data)) {
      changed.recipe["image_size"] = std::int64_t{train::usual_input(flags.model).height};
    }
    if (data::is_picture_folder(data)) {
      changed.recipe["normalize_by"] = std::string(usual_normalization(flags.model));
    }
    return changed;
  }
  const std::string of_flags = given_or(flags, "data", checkpoint.info->data);
  if (data::takes_image_size(of_flags)) {
    changed.recipe["image_size"] = std::int64_t{checkpoint.info->height};
  }
  if (data::is_picture_folder(of_flags)) {
    changed.recipe["exif"] = checkpoint.info->exif;
    changed.options.skip_broken |= checkpoint.info->skip_broken;
  }
  const std::string& data = checkpoint.info->data;
  const std::string named = given_or(flags, "data", data);
  if (named != data) return changed;
  if (!data::is_dataset(data)) {  // a folder may be gone
    throw UsageError(
        fmt::format("{} was trained on '{}', which is not here; name the data with --data",
                    checkpoint.file.string(), data));
  }
  changed.recipe["data"] = data;
  return with_data_flags_of(changed, checkpoint);
}

RawFlags with_data_flags_of(const RawFlags& flags, const Checkpoint& checkpoint) {
  RawFlags changed = flags;
  const train::ModelInfo& model = *checkpoint.info;
  if (says_sizes(model)) {
    const auto is_open = [&](const char* key) { return flags.given.count(key) == 0; };
    if (is_open("synthetic_train")) changed.options.synthetic_train = model.train_samples;
    if (is_open("synthetic_test")) changed.options.synthetic_test = model.test_samples;
  }
  std::string& data_dir = changed.options.files.data_dir;
  std::error_code error;
  const bool is_here = fs::is_directory(checkpoint.data_dir, error);
  if (data_dir.empty() && is_here) data_dir = checkpoint.data_dir;
  return changed;
}

namespace {

/// Whether these are what the run had, by its test and its sizes, as far as they are known.
bool are_of_run(const Checkpoint& checkpoint, const data::Splits& data) {
  const train::ModelInfo& info = *checkpoint.info;
  const std::string& test = checkpoint.test_contents;
  const bool knows_sizes = info.train_samples > 0;
  if (test.empty() && !knows_sizes) return false;
  const bool has_sizes =
      info.train_samples == data.train->size() && info.test_samples == data.test->size();
  return (test.empty() || test == data.test->contents()) && (!knows_sizes || has_sizes);
}

}  // namespace

data::Splits open_data_of(const Checkpoint& checkpoint, const RawFlags& flags,
                          train::TrainOptions options) {
  const std::string& data = options.recipe.data;
  if (!data::is_split(data)) return open_data(flags, options);
  if (!checkpoint.info) {  // nobody knows of any that it was trained on
    options.recipe.split = 0;
    options.only_test = true;
    return open_data(flags, options);
  }
  std::error_code error;
  const bool is_other =
      data != checkpoint.info->data && !fs::equivalent(data, checkpoint.info->data, error);
  options.recipe.split = checkpoint.info->split;
  options.train_alone = options.recipe.split == 0;  // so a run with --verify has it
  try {
    data::Splits as_trained = open_data(flags, options);
    if (!is_other || are_of_run(checkpoint, as_trained)) return as_trained;
  } catch (const DataError&) {  // what cannot be split is another folder
    if (!is_other) throw;
  }
  options.recipe.split = 0;
  options.train_alone = false;
  options.only_test = true;
  return open_data(flags, options);
}

namespace {

/// Whether a run calls a state so. The last is the state while it is being replaced
/// (base/files/aside.h).
bool is_name_of_state(const fs::path& path) {
  const std::string name = path.filename().string();
  return name == "state" || name == train::kStateBefore || name.starts_with("state.old.");
}

}  // namespace

fs::path run_of(const fs::path& folder) {
  fs::path named = folder.has_filename() ? folder : folder.parent_path();
  std::error_code error;
  if (!fs::exists(named / "state.json", error)) return named;
  if (is_name_of_state(named)) {
    return named.has_parent_path() ? named.parent_path() : fs::path(".");
  }
  const fs::path real = fs::canonical(named, error);  // also of a link to a state
  return is_name_of_state(real) ? real.parent_path() : named;
}

train::ModelInfo assume_info(const Checkpoint& checkpoint, const train::Recipe& recipe,
                             const data::Dataset* train) {
  train::ModelInfo info{.model = recipe.model, .data = "unknown data"};
  constexpr data::PixelStatistics kUsual = data::kFashionMnistPixels;
  data::PerChannel mean = static_cast<float>(kUsual.mean);
  data::PerChannel deviation = static_cast<float>(kUsual.deviation);
  if (train != nullptr) {
    info.channels = static_cast<int>(train->channels());
    info.height = static_cast<int>(train->height());
    info.width = static_cast<int>(train->width());
    info.output_names = train->target_names();
    info.data = recipe.data;
    mean = train->mean();
    deviation = train->deviation();
  } else {
    const nn::ModelInput input = input_in(checkpoint.file, recipe.model);
    info.channels = input.channels;
    info.height = input.height;
    info.width = input.width;
    info.photographs = input.channels > 1;
    for (int k = 0; k < input.outputs; ++k) info.output_names.push_back(std::to_string(k));
  }
  // The pictures that happen to be trained on beside those of the test say nothing of the weights.
  constexpr int kColours = 3;
  if (info.channels == kColours && (train == nullptr || data::is_picture_folder(recipe.data))) {
    const auto usual = train::normalization_named(usual_normalization(recipe.model), info.channels);
    mean = usual.mean;
    deviation = usual.deviation;
  }
  if (recipe.normalize) {
    info.mean = mean;
    info.deviation = deviation;
  }
  return info;
}

}  // namespace ringlet::app
