// ringlet eval
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <memory>

#include "app/cli/commands.h"
#include "app/cli/flags.h"
#include "app/cli/processes.h"
#include "app/cli/signals.h"
#include "app/cli/usage.h"
#include "app/commands/checkpoint.h"
#include "app/commands/class_match.h"
#include "base/files/atomic_file.h"
#include "base/one_line.h"
#include "data/open_dataset.h"
#include "train/files/centres.h"
#include "train/telemetry/console.h"
#include "train/trainer.h"

namespace ringlet::app {

namespace {

struct EvalFlags {
  RawFlags raw;
  std::filesystem::path checkpoint;
  bool allow_nonfinite = false;
};

/// Normalises as the model was trained, whatever the statistics of the data at hand are.
void normalize_as(const std::optional<train::ModelInfo>& info, data::LoaderOptions& loader) {
  if (!info) return;
  loader.mean = info->mean;
  loader.deviation = info->deviation;
}

/// What makes the test data others than those of the run, in words; empty where nothing does. A
/// folder may have moved: it is known by what is in it, where that is known.
std::string other_data(const Checkpoint& checkpoint, const std::string& data,
                       const data::Dataset& test) {
  if (!checkpoint.info) return {};
  const train::ModelInfo& info = *checkpoint.info;
  const bool named =
      data::find_dataset(data) != nullptr || data::find_dataset(info.data) != nullptr;
  const bool same = checkpoint.test_contents == test.contents();
  if (data != info.data && (named || !same)) {
    return fmt::format("--data {} (the run has {})", data, on_one_line(info.data));
  }
  if (info.test_samples > 0 && info.test_samples != test.size()) {
    return fmt::format("{} {} (the run has {})",
                       is_generated(data) ? "--synthetic-test" : "test images", test.size(),
                       info.test_samples);
  }
  const bool has_all_classes = test.target_values() == std::ssize(info.output_names);
  if (same || checkpoint.test_contents.empty() || !has_all_classes) return {};
  return fmt::format("{} (the run has {})", test.contents(), on_one_line(checkpoint.test_contents));
}

/// Finite weights may still compute what is not.
void require_finite(const Checkpoint& checkpoint, const train::Evaluation& result,
                    const data::Dataset& dataset) {
  if (std::isfinite(result.loss)) return;
  throw FileError(fmt::format("{} gives a loss of {} on {}; its weights are broken",
                              checkpoint.file.string(), std::abs(result.loss), dataset.name()));
}

int run_evaluation(const EvalFlags& all, comm::Group& group) {
  const RawFlags& flags = all.raw;
  const Checkpoint checkpoint =
      open_checkpoint(all.checkpoint, group, flags.options.execution.comm_timeout, true);
  if (gives_embeddings(checkpoint) && checkpoint.centres.empty()) {
    throw UsageError(fmt::format(
        "{} gives embeddings, and beside it is no {}, whose classes could be told apart; 'ringlet "
        "verify' measures embeddings without",
        checkpoint.file.string(), train::kCentresFile));
  }
  train::TrainOptions options = resolve(with_data_of(with_model_of(flags, checkpoint), checkpoint));
  options.files.init_centres = checkpoint.centres;
  // The training images say how pixels are normalised only where the file does not.
  options.only_test = checkpoint.info.has_value();
  options.recipe.normalize &= !options.only_test;
  data::Splits data = open_data_of(checkpoint, flags, options);
  if (group.process() == 0) print_notes(data);
  const std::shared_ptr<const data::Dataset> test = data.test;
  const ClassMatch match = match_classes(checkpoint, test);
  data.test = match.set;
  data.train = match_classes(checkpoint, data.train).set;
  const std::string other = other_data(checkpoint, options.recipe.data, *test);
  train::RunSetup setup =
      checked([&] { return train::make_run_setup(options, data, group.size()); });
  normalize_as(checkpoint.info, setup.loader);
  setup.stop_requested = stop_noted;
  const train::Evaluation result =
      train::evaluate(group, setup, checkpoint.file, nonfinite_of(all.allow_nonfinite));
  if (group.process() != 0) return 0;
  if (!all.allow_nonfinite) require_finite(checkpoint, result, *data.test);
  if (result.without_length > 0) print_warning(train::in_words_of_lengths(result));
  print_answers(checkpoint, options.recipe.model, *test, match,
                other.empty() ? "" : "other data than the run's: " + other, result);
  return 0;
}

FlagValues config_of(const EvalFlags& flags) {
  const Checkpoint checkpoint = open_checkpoint(flags.checkpoint);
  return values_of(resolve(with_data_of(with_model_of(flags.raw, checkpoint), checkpoint)));
}

}  // namespace

void add_eval_command(CLI::App& app, Action& action) {
  auto all = std::make_shared<EvalFlags>();
  const std::shared_ptr<RawFlags> flags(all, &all->raw);
  flags->options.allow_unseen_targets = true;  // the model has its classes already
  CLI::App* command =
      app.add_subcommand("eval", "measure a model's loss and accuracy on the test data");
  add_checkpoint_flag(*command, all->checkpoint);
  add_data_flags(*command, *flags);
  add_run_flags(*command, *flags, kModelGroup, {"skip_broken"});
  command->get_option("--data")->description(
      fmt::format("{} [as the file says, else {}]", data_choices(), train::Recipe().data));
  add_no_normalize_flag(*command, *flags);
  add_allow_nonfinite_flag(*command, all->allow_nonfinite);
  add_precision_flags(*command, *flags, "Replicas");
  add_process_flag(*command, *flags);
  add_replica_flags(*command, *flags);
  add_gpu_flags(*command, *flags);
  command->callback([all, flags, command, &action] {
    note_data_flags(*command, *flags);
    action = {in_processes(flags, [=](comm::Group& group) { return run_evaluation(*all, group); }),
              [=] { return config_of(*all); }};
  });
}

}  // namespace ringlet::app
