// ringlet train
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/commands.h"
#include "app/cli/config.h"
#include "app/cli/count_line.h"
#include "app/cli/error_exit.h"
#include "app/cli/fit_pictures.h"
#include "app/cli/flags.h"
#include "app/cli/help.h"
#include "app/cli/outputs.h"
#include "app/cli/process.h"
#include "app/cli/processes.h"
#include "app/cli/settings.h"
#include "app/cli/signals.h"
#include "app/cli/standard_output.h"
#include "app/cli/usage.h"
#include "app/cli/version.h"
#include "app/commands/begun_weights.h"
#include "app/commands/checkpoint.h"
#include "app/commands/exact_bytes.h"
#include "app/commands/former_run.h"
#include "app/commands/run_claim.h"
#include "app/commands/sweep_runs.h"
#include "app/report/run_folder.h"
#include "base/files/atomic_file.h"
#include "base/files/input_file.h"
#include "base/memory_limits.h"
#include "base/one_line.h"
#include "comm/all_reduce/auto.h"
#include "comm/shared_text.h"
#include "data/synthetic_faces.h"
#include "kernels/linear.h"
#include "train/files/load_model.h"
#include "train/files/state.h"
#include "train/loop/best_test.h"
#include "train/recipe/models.h"
#include "train/reports/advice.h"
#include "train/setup/precision_trial.h"
#include "train/sync/tuning.h"
#include "train/task/classification.h"
#include "train/telemetry/console.h"
#include "train/telemetry/run_files.h"
#include "train/trainer.h"

namespace ringlet::app {

namespace {

namespace fs = std::filesystem;

constexpr const char* kConfigFile = "config.toml";  // in a run's folder
constexpr const char* kRuns = "runs";               // holds the runs that no --out names

std::string models_in_words() {
  constexpr std::size_t kColumn = 14;
  std::string text = "Models:\n";
  for (const std::string& name : train::model_names()) {
    text += help_row(name, train::model_help(name), kColumn, footer_width());
  }
  return text;
}

void add_file_flags(CLI::App& app, RawFlags& flags) {
  train::Files& files = flags.options.files;
  const char* group = "Start, stop and files";
  add_run_flags(app, flags, group,
                {"init", "init_centres", "fine_tune", "replace_head", "out", "save_every", "resume",
                 "no_out"});
  add_force_flag(app, files.force)->group(group);
  add_run_flags(app, flags, group, {"metrics", "tensorboard", "trace", "trace_spans", "max_steps"});
  CLI::Option *init = app.get_option("--init"), *resume = app.get_option("--resume");
  CLI::Option* centres = app.get_option("--init-centres");
  for (const char* beside : {"--replace-head", "--fine-tune"}) app.get_option(beside)->needs(init);
  resume->each([resume, init, centres, &files](const std::string& folder) {
    files.resume = folder;
    if (resumes_by_itself(files)) return;  // they are for the beginning
    resume->excludes(init)->excludes(centres);
  });
  for (const char* kept : {"--out", "--save-every", "--resume"}) {
    app.get_option("--no-out")->excludes(app.get_option(kept));
  }
}

/// `begins`: under --resume auto, which may also go on with what the folder holds.
void print_folder(const fs::path& out, bool begins) {
  fmt::print("folder    {}\n", out.empty() ? "none (--no-out)" : on_one_line(out.string()));
  if (begins) fmt::print("resume    no state is there, so the run begins\n");
}

void print_fit(const FittedFlags& fitted) {
  for (const std::string& line : fitted.told) fmt::print("chosen    {}\n", line);
}

/// What `auto` took, or what the type that was named takes beside f32 (`told`).
void print_precision(const train::RunSetup& setup, const std::string& told) {
  if (!setup.precision_told.empty()) fmt::print("chosen    {}\n", setup.precision_told);
  if (!told.empty()) fmt::print("precision {}\n", told);
}

/// Notes how long the first step took to come, and where things were saved.
class Notes : public train::RunListener {
 public:
  void step_done(const train::StepReport&) override {
    if (first_step_seconds_ < 0) first_step_seconds_ = seconds_since_process_start();
  }
  void epoch_done(const train::EpochReport& report) override {
    tested_ = true;
    epoch_ = report.epoch;
    learnt_.train_loss = report.train_loss;
    learnt_.test_loss = report.test.loss;
    learnt_.test_accuracy = report.test.accuracy();
  }
  void saved(const std::string& path) override { last_saved_ = path; }
  void print(const train::RunSetup& setup) const {
    if (first_step_seconds_ >= 0) {
      fmt::print("\nfirst step after {:.2f} s, peak memory {} MiB\n", first_step_seconds_,
                 peak_memory_mib());
    } else {
      const bool is_shorter = setup.last_step < setup.first_step;
      fmt::print("\nnothing {}was left to do: {}{} steps were done before{}\n",
                 tested_ ? "but the test " : "", setup.first_step,
                 is_shorter ? "" : fmt::format(" of {}", setup.last_step),
                 is_shorter ? fmt::format(", and {} were asked for", setup.last_step) : "");
    }
    fmt::print("{}\n",
               last_saved_.empty() ? "nothing was saved" : "saved " + on_one_line(last_saved_));
  }
  /// Of a run that has made all its epochs.
  void print_advice(const train::RunSetup& setup) const {
    const train::Recipe& recipe = setup.options.recipe;
    if (epoch_ < recipe.epochs) return;
    train::Learnt learnt = learnt_;
    learnt.classes = setup.data.train->target_values();
    learnt.photographs = setup.data.train->photographs();
    learnt.steps = setup.last_step;
    const std::string advice = train::advice_on(learnt, recipe);
    if (!advice.empty()) fmt::print("\nadvice    {}\n", advice);
  }

 private:
  double first_step_seconds_ = -1;
  bool tested_ = false;
  std::int64_t epoch_ = 0;  // the last that was tested
  train::Learnt learnt_;    // in it
  std::string last_saved_;
};

/// Shows the run as long as it can. A disk that is full, or a reader that has gone, does not cost
/// the run its work.
class Screen : public train::Console {
 public:
  using Console::Console;
  void started(const train::StartReport& report) override {
    print_if_possible([&] { Console::started(report); });
  }
  void step_done(const train::StepReport& report) override {
    print_if_possible([&] { Console::step_done(report); });
  }
  void epoch_done(const train::EpochReport& report) override {
    print_if_possible([&] { Console::epoch_done(report); });
  }
};

/// A reader of the output that goes away, as `head` does, stops a run as Ctrl-C does.
bool is_to_stop() {
  if (output_has_no_reader()) note_stop(SIGPIPE);
  return noted_signal() != 0;
}

void report_interruption(const train::RunResult& result, const train::Files& files,
                         const CLI::App& command) {
  std::FILE* out = output_has_no_reader() ? stderr : stdout;
  if (files.out.empty()) {
    fmt::print(out, "stopped after step {}; nothing was saved (--no-out)\n", result.step);
  } else {
    fmt::print(out, "stopped after step {}; go on with\n  {}\n", result.step,
               command_to_resume(command, files.out));
  }
}

/// The options of a run: of a new one, or of one that goes on with a former run's recipe.
train::TrainOptions options_of(const RawFlags& flags, const std::optional<FormerRun>& former) {
  if (!former) {
    train::TrainOptions options = resolve(flags);
    options.files.resume.clear();  // --resume auto has found nothing
    return options;
  }
  const std::optional<train::ModelInfo>& model = former->weights.info;
  train::TrainOptions options = resolve(model ? with_data_flags_of(flags, former->weights) : flags,
                                        former->state.recipe, model);
  options.allow_unseen_targets = true;  // the run has them, or it has other data, which is told
  if (model) options.skip_broken |= model->skip_broken;
  options.files.resume = former->folder;
  if (options.files.out.empty()) options.files.out = former->folder;
  return options;
}

FlagValues values_of_run(const train::TrainOptions& options) {
  FlagValues values = values_of(options);
  values["replace-head"] = options.files.replace_head ? "true" : "false";  // --fine-tune means it
  // A new run's folder is a setting only where it was given.
  if (!options.files.resume.empty()) values["out"] = options.files.out.string();
  return values;
}

FlagValues values_of_run(const RawFlags& flags) {
  const std::optional<FormerRun> former = read_former_run(flags.options.files);
  return values_of_run(options_of(former ? flags : fit_to_pictures(flags).flags, former));
}

/// A flag's value in the configuration of the run in `folder`, which says what its state does not:
/// the weights that it was started from, and how. Empty where it has none, or nothing can be read
/// there.
std::string configured(const fs::path& folder, const std::string& key) {
  std::error_code error;
  if (!fs::is_regular_file(folder / kConfigFile, error)) return {};  // a pipe would be waited for
  try {
    for (const ConfigEntry& entry : read_config(folder / kConfigFile)) {
      if (entry.key == key && !entry.values.empty()) return entry.values.front();
    }
  } catch (const ConfigError&) {  // it explains a run; going on does not need it
  }
  return {};
}

void warn_of_openblas() {
  const std::string build = other_build_of_openblas();
  if (build.empty()) return;
  print_warning(fmt::format(
      "the OpenBLAS that was found is the {} build, and Ringlet needs the one for POSIX "
      "threads: products may be wrong; install libopenblas0-pthread, or name its "
      "folder in LD_LIBRARY_PATH",
      build));
}

/// Of the first process: its table is everybody's.
void warn_of_foreign_tuning(const train::Execution& execution, const comm::Group& group) {
  if (execution.sync != comm::AutoAllReduce::kName || group.size() < 2) return;
  const std::string why = train::why_foreign(train::tuning_file());
  if (!why.empty()) print_warning(why);
}

/// A curve of accuracies is of one set of test data.
void warn_of_other_tests(const Checkpoint& weights, const data::Dataset& test) {
  const std::string now = test.contents(), before = on_one_line(weights.test_contents);
  if (before.empty() || before == now) return;
  print_warning(
      fmt::format("the test data are others than before, and so are accuracies from here on: {} "
                  "(before: {})",
                  now, before));
}

/// The run that --resume means. The first process claims its folder, reads it, and puts a broken
/// state aside.
std::optional<FormerRun> find_former_run(const train::Files& files, double comm_timeout,
                                         comm::Group& group, RunClaim& claim) {
  if (files.resume.empty()) return {};
  const auto read = [&] {
    claim.resumed(files);
    std::optional<train::LastState> last;
    std::optional<FormerRun> former = read_former_run(files, &last);
    if (last && !last->warning.empty()) {
      print_warning(last->warning);
      train::restore(*last, files.out);
      former->state.folder = last->state.folder;
    }
    return to_text(former);
  };
  return former_run_of(comm::from_first(group, "run to go on with", comm_timeout, read));
}

/// The line of a run's configuration that says which of its settings nobody gave: "# chosen by the
/// pictures: epochs, lr\n". A run that goes on has that of its beginning. Empty: there are none.
std::string line_of_chosen(const fs::path& resumed, const std::vector<std::string>& chosen) {
  if (!chosen.empty()) {
    return fmt::format("{} {}\n", report::kChosenByPictures, fmt::join(chosen, ", "));
  }
  constexpr std::uintmax_t kMostBytes = 1 << 20;
  std::error_code error;
  if (resumed.empty() || !fs::is_regular_file(resumed / kConfigFile, error)) return {};
  std::string text;
  try {
    text = read_text(resumed / kConfigFile, kMostBytes);
  } catch (const FileError&) {
    return {};
  }
  const std::size_t begin = text.find('\n') + 1;
  const std::string line = text.substr(begin, text.find('\n', begin) - begin);
  return line.starts_with(report::kChosenByPictures) ? on_one_line(line) + "\n" : "";
}

/// Writes the effective configuration into the run's folder.
void write_config(const CLI::App& command, const train::TrainOptions& options,
                  const std::vector<std::string>& chosen) {
  FlagValues values = values_of_run(options);
  if (const fs::path& run = options.files.resume; !run.empty()) {
    for (const char* key : {"init", "fine-tune", "replace-head"}) {
      if (const std::string begun = configured(run, key); !begun.empty()) values[key] = begun;
    }
    if (configured(run, "out").empty()) values.erase("out");
  }
  std::string text = effective_config(command, values);
  text.insert(text.find('\n') + 1, line_of_chosen(options.files.resume, chosen));
  write_file_atomically(options.files.out / kConfigFile, text);
}

/// Makes the run's folder where none is named, and opens its files, all in the first process.
std::optional<train::RunFiles> open_files(const FittedFlags& fitted, const CLI::App& command,
                                          comm::Group& group, RunClaim& claim,
                                          train::TrainOptions& options, train::RunSetup& setup) {
  const RawFlags& flags = fitted.flags;
  fs::path& out = options.files.out;
  std::optional<train::RunFiles> written;
  out = comm::from_first(group, "run's folder", options.execution.comm_timeout, [&] {
    if (out.empty() && !flags.no_out) {
      out = make_run_folder(kRuns, options.recipe.model);
      claim.made(out);
    }
    const bool begins = resumes_by_itself(flags.options.files) && !setup.resumed;
    print_if_possible([&] { print_folder(out, begins); });
    // The first of its files: by it --resume auto knows a start that came no further.
    if (!out.empty()) write_config(command, options, fitted.chosen);
    setup.options.files.out = out;
    setup.lock = claim.lock();
    written.emplace(setup, build_facts());
    return out.string();
  });
  setup.options.files.out = out;
  return written;
}

/// A line; nothing where it lacks nothing.
std::string what_a_trace_lacks(const train::TraceWriter& trace) {
  if (trace.left_out() == 0) return "";
  return fmt::format("it was full: {} later spans are left out; --trace-spans 0 keeps all\n",
                     train::with_commas(trace.left_out()));
}

/// "epoch 4"
std::string epoch_of(const train::BestTest& best, const train::RunSetup& setup) {
  return fmt::format("epoch {}", setup.partition.epoch_of(best.step - 1) + 1);
}

/// Which model was the best, and whether --patience has ended the run.
void print_best(const train::RunResult& result, const train::RunSetup& setup) {
  if (!result.best) return;
  const train::BestTest& best = *result.best;
  const fs::path& out = setup.options.files.out;
  fmt::print("\nbest      {} after {}{}\n", in_words(best), epoch_of(best, setup),
             out.empty() ? "" : ": " + on_one_line((out / train::kBestModelFile).string()));
  if (!result.stopped) return;
  const std::int64_t epoch = setup.partition.epoch_of(result.step - 1) + 1;
  fmt::print(
      "patience  the run has ended after epoch {} of {}: {} no better; a larger --patience (now "
      "{}) or more --epochs let --resume go on\n",
      epoch, setup.options.recipe.epochs,
      best.worse == 1 ? "the last one was" : fmt::format("the last {} were", best.worse),
      setup.options.recipe.patience);
}

/// What is told of a run at its end. `trace`: null: there is none.
void print_end(const train::RunResult& result, const train::RunSetup& setup,
               const CLI::App& command, const Notes& notes, train::Console& console,
               const train::TraceWriter* trace) {
  const train::TrainOptions& options = setup.options;
  print_if_possible([&] { console.finish(); });
  if (trace != nullptr) {
    fmt::print("\n{}{}", where_traces_are(options.files.trace, options.execution.in_processes),
               what_a_trace_lacks(*trace));
  }
  if (result.interrupted) return report_interruption(result, options.files, command);
  if (result.test.samples > 0) {
    fmt::print("\n");
    train::print_classes(stdout, result.test, train::class_counts(result.test),
                         setup.data.test->target_names());
  }
  print_best(result, setup);
  notes.print(setup);
  notes.print_advice(setup);
}

int run_training(const RawFlags& flags, const CLI::App& command, comm::Group& group) {
  const bool speaks = group.process() == 0;
  if (speaks) warn_of_openblas();
  RunClaim claim(command);  // of the first process, for all
  std::optional<FormerRun> former =
      find_former_run(flags.options.files, flags.options.execution.comm_timeout, group, claim);
  const FittedFlags fitted = former
                                 ? FittedFlags{flags}
                                 : fit_to_pictures(flags, group);  // a run that goes on has its own
  train::TrainOptions options = options_of(fitted.flags, former);
  train::Files& files = options.files;
  if (speaks && !former) find_named_weights(files.init);
  if (speaks) claim.outputs(options, group.processes());
  if (!speaks && !files.trace.empty()) {  // it may be on a disk that the first process has not
    Outputs(command, files.force).writes("--trace", file_of_process(files.trace, group.process()));
  }
  if (speaks && !former && !files.init.empty()) warn_of_rounding(train::model_file_of(files.init));
  warn_of_other_bytes(group, options);
  if (speaks) warn_of_foreign_tuning(options.execution, group);
  const std::uint64_t memory = usable_memory();
  if (const std::int64_t drawn = data::synthetic_identities(options.recipe.data); drawn > 0) {
    checked([&] { train::require_room(options, group.size(), drawn, memory); });  // before names
  }
  const data::Splits data = open_data(flags, options);
  if (!former) fit_micro_batches(flags, options, data.train->size());
  if (speaks && !former) warn_of_frozen_chance(options);
  if (speaks) print_notes(data);
  if (speaks) print_if_possible([&] { print_fit(fitted); });
  for (const auto& half : {data.train, data.test}) half->look_at_samples();
  std::optional<train::SavedState> saved;
  if (former) saved = std::move(former->state);
  train::RunSetup setup = checked(
      [&] { return train::make_run_setup(options, data, group.size(), std::move(saved), &group); });
  checked([&] { train::require_trainable(setup); });
  checked([&] {
    train::require_room(setup.options, group.size(), setup.replica.input.outputs, memory);
  });
  if (speaks && former) warn_of_other_tests(former->weights, *data.test);
  if (speaks && !former && !files.init.empty()) print_init(flags, setup);
  options.recipe.precision = setup.options.recipe.precision;
  const std::string precision = train::told_of_precision(setup, &group);
  if (speaks) print_if_possible([&] { print_precision(setup, precision); });
  setup.stop_requested = is_to_stop;

  const std::optional<train::RunFiles> written =
      open_files(fitted, command, group, claim, options, setup);
  Screen screen(stdout, can_renew_lines(STDOUT_FILENO));
  Notes notes;
  std::vector<train::RunListener*> listeners{&notes, &screen};
  if (written) {
    for (train::RunListener* file : written->listeners()) listeners.push_back(file);
  }
  std::unique_ptr<train::TraceWriter> trace;
  if (!files.trace.empty()) trace = std::make_unique<train::TraceWriter>(files.trace_spans);

  const fs::path timeline = file_of_process(files.trace, group.process());
  train::RunResult result;
  train::traced(trace.get(), timeline, group, options.execution.comm_timeout,
                [&] { result = train::train(group, setup, listeners, trace.get()); });
  const int code = result.interrupted ? kInterrupted + stop_signal(group) : 0;
  if (speaks)
    print_if_possible([&] { print_end(result, setup, command, notes, screen, trace.get()); });
  return code;
}

}  // namespace

void add_train_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<RawFlags>();
  CLI::App* command = app.add_subcommand("train", "train a model on one or more replicas");
  add_data_flags(*command, *flags);
  command->get_option("--model")->description(
      fmt::format("which network and recipe [{}; by the photographs of a folder]", flags->model));
  add_run_flags(*command, *flags, kModelGroup, {"allow_empty_classes", "cache", "skip_broken"});
  add_recipe_flags(*command, *flags, PrecisionFlag::may_be_auto);
  add_process_flag(*command, *flags);
  add_replica_flags(*command, *flags);
  add_stage_flags(*command, *flags);
  add_gpu_flags(*command, *flags);
  add_sync_flags(*command, *flags);
  command->footer(models_in_words());
  add_file_flags(*command, *flags);
  auto sweep = std::make_shared<SweepFlags>();
  add_sweep_flags(*command, *sweep, "Several runs");
  command->callback([flags, sweep, command, &action] {
    note_data_flags(*command, *flags);
    if (sweep->asked_for()) {
      note_words(*command, *sweep);
      action = {[=] { return run_sweep(*sweep, *flags, *command); },
                [=] { return values_of_run(*flags); }};
      return;
    }
    require_a_sweep(*command);
    action = {
        in_processes(flags, std::bind_front(run_training, std::cref(*flags), std::cref(*command))),
        [=] { return values_of_run(*flags); }};
  });
}

}  // namespace ringlet::app
