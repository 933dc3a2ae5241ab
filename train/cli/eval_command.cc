// ringlet eval
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "data/open_dataset.h"
#include "train/cli/commands.h"
#include "train/cli/flags.h"
#include "train/cli/processes.h"
#include "train/cli/usage.h"
#include "train/console.h"
#include "train/trainer.h"

namespace ringlet::train {

namespace {

/// A run's folder stands for the model in it.
std::filesystem::path file_in(const std::filesystem::path& checkpoint) {
  std::error_code error;
  if (!std::filesystem::is_directory(checkpoint, error)) return checkpoint;
  return checkpoint / "model.safetensors";
}

int run(const RawFlags& flags, const std::filesystem::path& checkpoint,
        comm::ProcessGroup* processes) {
  const TrainOptions options = resolve(flags);
  const data::Splits data =
      data::open_dataset(options.recipe.data, {.directory = options.files.data_dir,
                                               .synthetic_train = options.synthetic_train,
                                               .synthetic_test = options.synthetic_test});
  const int ranks = ranks_of(options.execution, processes);
  const RunSetup setup = checked([&] { return make_run_setup(options, data, ranks); });
  const std::filesystem::path file = file_in(checkpoint);
  const Evaluation result = evaluate(setup, file, processes);
  if (processes != nullptr && processes->process() != 0) return 0;
  fmt::print("{} on {}\n\n", file.string(), data.test->description());
  print_evaluation(stdout, result, data.test->class_names());
  return 0;
}

}  // namespace

void add_eval_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<RawFlags>();
  auto checkpoint = std::make_shared<std::filesystem::path>();
  CLI::App* command =
      app.add_subcommand("eval", "loss and accuracy of a model's weights on the test data");
  command
      ->add_option("--checkpoint,--init", *checkpoint,
                   "the weights (safetensors), or the folder of a run that holds them")
      ->required()
      ->type_name("FILE|DIR")
      ->group("Files");
  add_data_flags(*command, *flags);
  command
      ->add_flag_callback(
          "--no-normalize", [flags] { flags->recipe["normalize"] = false; },
          "divide pixels by 255 and nothing else [lenet-d2l]")
      ->disable_flag_override()
      ->group("Model and data");
  add_process_flag(*command, *flags);
  add_replica_flags(*command, *flags);
  add_gpu_flags(*command, *flags);
  command->callback([flags, checkpoint, &action] {
    action = [=] {
      return run_in_processes(*flags, [&](comm::ProcessGroup* processes) {
        return run(*flags, *checkpoint, processes);
      });
    };
  });
}

}  // namespace ringlet::train
