// ringlet train
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include "data/open_dataset.h"
#include "train/atomic_file.h"
#include "train/cli/commands.h"
#include "train/cli/flags.h"
#include "train/cli/process.h"
#include "train/cli/signals.h"
#include "train/console.h"
#include "train/metrics.h"
#include "train/trainer.h"

namespace ringlet::train {

namespace {

namespace fs = std::filesystem;

constexpr int kInterrupted = 128;  // plus the signal's number: what shells expect

void add_file_flags(CLI::App& app, TrainOptions& options) {
  Files& files = options.files;
  const char* group = "Files";
  app.add_option("--init", files.init, "start from these weights (safetensors, PyTorch's too)")
      ->group(group);
  app.add_option("--out", files.out, "folder for the model and the states to resume from")
      ->group(group);
  app.add_option("--save-every", files.save_every,
                 "steps between saved states; 0: at the end of each epoch")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->group(group);
  app.add_option("--resume", files.resume, "go on with the run in this folder")
      ->excludes("--init")
      ->group(group);
  app.add_flag("--force", files.force, "write into an --out that holds another run")->group(group);
  app.add_option("--metrics", files.metrics, "write a line of JSON for each step and epoch")
      ->group(group);
  app.add_option("--trace", files.trace, "write a timeline (Chrome trace; open it in Perfetto)")
      ->group(group);
  app.add_option("--max-steps", options.max_steps,
                 "stop after so many steps of the whole run; the schedule stays as planned")
      ->check(CLI::NonNegativeNumber)
      ->group("Recipe");
}

void require_free_folder(const Files& files) {
  if (files.out.empty()) return;
  const bool used = fs::exists(files.out / "state") || fs::exists(files.out / "model.safetensors");
  if (used && !files.force && files.resume.empty()) {
    throw FileError("--out " + files.out.string() +
                    " holds another run; go on with it by --resume " + files.out.string() +
                    ", or replace it with --force");
  }
  require_writable_directory(files.out);
}

/// Tells how long the first step took to come, and where things were saved.
class Notes : public RunListener {
 public:
  void step_done(const StepReport&) override {
    if (first_step_seconds_ < 0) first_step_seconds_ = seconds_since_process_start();
  }
  void saved(const std::string& path) override { last_saved_ = path; }
  double first_step_seconds() const { return first_step_seconds_; }
  const std::string& last_saved() const { return last_saved_; }

 private:
  double first_step_seconds_ = -1;
  std::string last_saved_;
};

int report_interruption(const RunResult& result, const Files& files) {
  if (files.out.empty()) {
    fmt::print("stopped after step {}; nothing was saved, since there is no --out\n", result.step);
  } else {
    fmt::print("stopped after step {}; go on with\n  ringlet train --resume {}\n", result.step,
               files.out.string());
  }
  return kInterrupted + noted_signal();
}

int run(const RawFlags& flags) {
  std::optional<SavedState> saved;
  if (!flags.options.files.resume.empty()) saved = read_state(flags.options.files.resume);
  TrainOptions options = saved ? resolve(flags, saved->recipe) : resolve(flags);
  Files& files = options.files;
  if (saved && files.out.empty()) files.out = files.resume;
  require_free_folder(files);
  const data::Splits data =
      data::open_dataset(options.recipe.data, {.directory = files.data_dir,
                                               .synthetic_train = options.synthetic_train,
                                               .synthetic_test = options.synthetic_test});
  const int ranks = static_cast<int>(options.execution.devices.size());
  RunSetup setup = make_run_setup(options, data, ranks, std::move(saved));
  setup.stop_requested = [] { return noted_signal() != 0; };
  note_stop_signals();

  Console console(stdout, isatty(STDOUT_FILENO) != 0);
  Notes notes;
  std::vector<RunListener*> listeners{&notes, &console};
  std::unique_ptr<MetricsWriter> metrics;
  if (!files.metrics.empty()) {
    metrics = std::make_unique<MetricsWriter>(files.metrics, setup.first_step,
                                              setup.partition.steps_per_epoch());
    listeners.push_back(metrics.get());
  }
  std::unique_ptr<TraceWriter> trace;
  if (!files.trace.empty()) trace = std::make_unique<TraceWriter>();

  const RunResult result = train(setup, listeners, trace.get());
  if (trace) trace->write(files.trace);
  if (result.interrupted) return report_interruption(result, files);
  if (result.test.samples > 0) {
    fmt::print("\n");
    print_evaluation(stdout, result.test, data.test->class_names());
  }
  fmt::print("\nfirst step after {:.2f} s, peak memory {} MiB\n", notes.first_step_seconds(),
             peak_memory_mib());
  if (!notes.last_saved().empty()) fmt::print("saved {}\n", notes.last_saved());
  return 0;
}

}  // namespace

void add_train_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<RawFlags>();
  CLI::App* command = app.add_subcommand("train", "train a model on one or more replicas");
  add_data_flags(*command, *flags);
  add_recipe_flags(*command, *flags);
  add_replica_flags(*command, *flags);
  add_sync_flags(*command, *flags);
  add_file_flags(*command, flags->options);
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace ringlet::train
