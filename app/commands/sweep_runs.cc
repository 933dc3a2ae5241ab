#include "app/commands/sweep_runs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "app/cli/checks.h"
#include "app/cli/count_line.h"
#include "app/cli/error_exit.h"
#include "app/cli/fit_pictures.h"
#include "app/cli/outputs.h"
#include "app/cli/own_program.h"
#include "app/cli/settings.h"
#include "app/cli/signals.h"
#include "app/cli/standard_output.h"
#include "app/cli/suggest.h"
#include "app/cli/usage.h"
#include "app/commands/former_run.h"
#include "app/commands/run_claim.h"
#include "app/report/run_folder.h"
#include "app/sweep/sweep_page.h"
#include "app/sweep/sweep_plan.h"
#include "app/sweep/sweep_results.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/files/atomic_file.h"
#include "base/files/file_error.h"
#include "base/files/input_file.h"
#include "base/files/json_text.h"
#include "base/one_line.h"
#include "train/files/run_lock.h"

namespace ringlet::app {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using sweep::Outcome;
using sweep::Outcomes;
using sweep::Status;
using sweep::SweepPlan;

constexpr const char* kRecord = "sweep.json";
constexpr const char* kPage = "sweep.html";
constexpr std::uintmax_t kMostRecord = std::uintmax_t{1} << 26;  // bytes; a thousand runs take less
constexpr std::chrono::milliseconds kLook(100);

/// What a run of a sweep gets from the sweep, or what all of them would write at once.
const std::set<std::string>& not_for_runs() {
  static const std::set<std::string> keys{"seeds",  "sweep", "runs-at-once", "out",
                                          "no-out", "force", "resume"};
  return keys;
}

/// A run's command line, and the variables of its environment: a switch can be turned off there
/// alone.
struct RunFlags {
  std::vector<std::string> words, variables;

  void add(const CLI::Option& option, const std::string& value) {
    const std::string key = key_of(option);
    if (!is_switch(option)) {
      words.push_back(value.empty() ? "--" + key : "--" + key + "=" + value);
    } else if (value == "true") {
      words.push_back("--" + key);
    } else {
      variables.push_back(variable_of(key) + "=" + value);
    }
  }
};

[[noreturn]] void refuse_open_precision() {
  throw UsageError(
      "--precision auto: the runs of a sweep are compared, and each might take another type; name "
      "one");
}

void refuse_beside_a_sweep(const RawFlags& flags) {
  if (leaves_precision_open(flags)) refuse_open_precision();
  if (flags.in_processes && !flags.processes) {
    throw UsageError(
        "a sweep starts its runs by itself: --processes needs a number beside --seeds and --sweep");
  }
  if (!flags.options.files.resume.empty() && !resumes_by_itself(flags.options.files)) {
    throw UsageError(
        "--resume auto goes on with the sweep in --out; no other run can be resumed "
        "by a sweep");
  }
}

/// The flag of this axis. Throws UsageError where it cannot be swept.
const CLI::Option& option_of(const CLI::App& command, const sweep::Axis& axis,
                             const SweepFlags& flags) {
  const CLI::Option* option = command.get_option_no_throw("--" + axis.key);
  if (option == nullptr) {
    std::vector<std::string> known;
    for (const CLI::Option* one : command.get_options()) known.push_back(key_of(*one));
    const std::string meant = nearest(axis.key, known);
    throw UsageError(fmt::format("--sweep: 'ringlet train' has no flag --{}{}", axis.key,
                                 meant.empty() ? "" : "; did you mean " + meant + "?"));
  }
  const std::string key = key_of(*option);
  if (key == "seed" || key == "seeds") {
    throw UsageError("--sweep: write --seeds 1,2,3 for several seeds");
  }
  if (!can_be_set(*option) || not_for_runs().count(key) > 0) {
    throw UsageError(fmt::format("--sweep: --{} cannot differ between the runs of a sweep", key));
  }
  const bool is_given =
      std::any_of(flags.words.begin(), flags.words.end(), [&](const std::string& word) {
        return word == "--" + key || word.starts_with("--" + key + "=");
      });
  if (is_given) throw UsageError(fmt::format("--{} is given and swept; leave one out", key));
  for (const std::string& value : axis.values) {
    if (key == "precision" && value == train::kAutomaticPrecision) refuse_open_precision();
    if (is_switch(*option) && value != "true" && value != "false") {
      throw UsageError(fmt::format("--sweep: --{} takes no value; sweep {}=true,false", key, key));
    }
  }
  return *option;
}

SweepPlan plan_of(const SweepFlags& flags, const RawFlags& raw, const CLI::App& command) {
  try {
    std::vector<sweep::Axis> axes;
    for (const std::string& text : flags.axes) {
      axes.push_back(sweep::axis_of(text));
      axes.back().key = key_of(option_of(command, axes.back(), flags));
    }
    const std::string seed = std::to_string(given_or(raw, "seed", std::uint64_t{1}));
    return sweep::plan_of(std::move(axes),
                          sweep::seeds_of(flags.seeds.empty() ? seed : flags.seeds));
  } catch (const sweep::SweepError& error) {
    throw UsageError(error.what());
  }
}

/// The epochs in the metrics that a run has written so far.
std::int64_t epochs_in(const fs::path& metrics) {
  std::ifstream file(metrics);
  std::int64_t epochs = 0;
  for (std::string line; std::getline(file, line);) {
    epochs += line.starts_with("{\"kind\":\"epoch\"") ? 1 : 0;
  }
  return epochs;
}

class Sweep {
 public:
  /// `epochs`: those of a run; 0: not known beforehand.
  Sweep(SweepPlan plan, const SweepFlags& flags, const CLI::App& command, bool resumes, bool force,
        std::int64_t epochs)
      : plan_(std::move(plan)),
        flags_(flags),
        command_(command),
        resumes_(resumes),
        force_(force),
        outcomes_(plan_.runs.size()),
        line_(epochs * static_cast<std::int64_t>(plan_.runs.size()), "epochs", epochs > 0) {}

  /// The folder of all runs. Under --resume auto takes over what a former sweep of the same flags
  /// has done there.
  void go_on_in(const fs::path& folder);
  /// Throws UsageError where a run would refuse a setting's flags.
  void check_settings() const;
  /// Throws UsageError or Error where no setting gets as far as its first step: other seeds would
  /// not either.
  void run();
  /// Says what came of it. Returns the exit code.
  int finish() const;

 private:
  struct Running {
    std::size_t run;
    std::unique_ptr<ChildProgram> child;
  };

  fs::path folder_of(std::size_t run) const { return folder_ / plan_.runs[run].folder; }
  fs::path log_of(std::size_t run) const { return folder_ / (plan_.runs[run].folder + ".txt"); }
  RunFlags flags_of(std::size_t run) const;
  void start(std::size_t run);
  void look();
  void note(std::size_t run, int code);
  bool failed_at_start(std::size_t run) const;
  bool nothing_trains() const;
  void note_figures(std::size_t run, Outcome& outcome) const;
  void write() const;
  void show(std::size_t run) const;
  void show_news(std::size_t run);
  void show_progress();

  SweepPlan plan_;
  const SweepFlags& flags_;
  const CLI::App& command_;
  fs::path folder_;
  bool resumes_, force_;
  Outcomes outcomes_;
  std::vector<Running> running_;
  std::set<std::string> told_;  // lines of runs that stand here too
  bool told_to_stop_ = false;
  CountLine line_;
  Clock::time_point last_shown_{};
};

RunFlags Sweep::flags_of(std::size_t run) const {
  RunFlags flags{{command_.get_name()}, {std::string(kOfSweep) + "=1"}};
  flags.words.insert(flags.words.end(), flags_.words.begin(), flags_.words.end());
  for (std::size_t i = 0; i < plan_.axes.size(); ++i) {
    flags.add(*command_.get_option("--" + plan_.axes[i].key),
              plan_.settings[plan_.runs[run].setting][i]);
  }
  flags.words.push_back("--seed=" + plan_.runs[run].seed);
  return flags;
}

void Sweep::go_on_in(const fs::path& folder) {
  folder_ = folder;
  const fs::path record = folder_ / kRecord;
  if (!resumes_ || !fs::exists(record)) return;
  const sweep::FormerSweep former =
      sweep::former_sweep(on_one_line(record.string()), read_text(record, kMostRecord));
  if (former.flags != flags_.words) {
    throw UsageError(
        fmt::format("the sweep in {} was of other flags ({}); give these, or another --out",
                    on_one_line(folder_.string()),
                    on_one_line(fmt::format("{}", fmt::join(former.flags, " ")))));
  }
  for (const auto& [name, outcome] : former.runs) {
    for (std::size_t i = 0; i < plan_.runs.size(); ++i) {
      if (plan_.runs[i].folder == name && outcome.status == Status::done) outcomes_[i] = outcome;
    }
  }
}

void Sweep::check_settings() const {
  for (std::size_t i = 0; i < plan_.settings.size(); ++i) {  // the first seed's runs
    RunFlags flags = flags_of(i);
    flags.words.emplace_back("--print-config");
    const Descriptor printed(::memfd_create("ringlet-flags", MFD_CLOEXEC));
    ChildProgram child(flags.words, flags.variables, printed);
    std::optional<int> code;
    while (!(code = child.ended())) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (*code == 0) continue;
    std::ifstream text(fmt::format("/proc/self/fd/{}", printed.get()));
    const std::string why = error_in(text);
    throw UsageError(fmt::format("{}: {}", name_of(plan_, i),
                                 why.empty() ? fmt::format("ended with code {}", *code) : why));
  }
}

void Sweep::start(std::size_t run) {
  RunFlags flags = flags_of(run);
  flags.words.push_back("--out=" + folder_of(run).string());
  if (resumes_) flags.words.emplace_back("--resume=auto");
  if (force_) flags.words.emplace_back("--force");
  const Descriptor printed(
      ::open(log_of(run).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!printed.open()) {
    throw FileError(fmt::format("{} cannot be written: {}", on_one_line(log_of(run).string()),
                                std::generic_category().message(errno)));
  }
  running_.push_back({run, std::make_unique<ChildProgram>(flags.words, flags.variables, printed)});
}

void Sweep::note_figures(std::size_t run, Outcome& outcome) const {
  try {
    const report::RunResult result = result_of(report::read_run(folder_of(run)));
    outcome.train_loss = result.train_loss;
    outcome.test_loss = result.test_loss;
    outcome.test_accuracy = result.test_accuracy;
    outcome.seconds = result.seconds;
  } catch (const Error&) {  // it has none
  }
  outcome.epochs = epochs_in(folder_of(run) / "metrics.jsonl");
}

void Sweep::note(std::size_t run, int code) {
  Outcome outcome;
  outcome.exit_code = code;
  const bool is_stopped = told_to_stop_ && code >= kInterrupted;
  outcome.status = code == 0 ? Status::done : is_stopped ? Status::stopped : Status::failed;
  if (outcome.status == Status::failed) {
    std::ifstream printed(log_of(run));
    outcome.error = error_in(printed);
    if (outcome.error.empty()) outcome.error = "see " + on_one_line(log_of(run).string());
  }
  note_figures(run, outcome);
  outcomes_[run] = outcome;
  write();
  show_news(run);
  line_.clear();
  print_if_possible([&] { show(run); });
}

bool Sweep::failed_at_start(std::size_t run) const {
  std::error_code error;
  const auto bytes = fs::file_size(folder_of(run) / "metrics.jsonl", error);
  return outcomes_[run].status == Status::failed && (error || bytes == 0);
}

bool Sweep::nothing_trains() const {
  for (std::size_t i = 0; i < plan_.settings.size(); ++i) {  // the first seed's runs
    if (!failed_at_start(i)) return false;
  }
  return true;
}

void Sweep::write() const {
  write_file_atomically(folder_ / kRecord, row_a_line(to_json(plan_, outcomes_, flags_.words)));
  sweep::Curves curves(plan_.runs.size());
  for (std::size_t i = 0; i < curves.size(); ++i) {
    if (outcomes_[i].epochs == 0) continue;
    try {
      curves[i] = train::read_metrics(folder_of(i) / "metrics.jsonl").epochs;
    } catch (const Error&) {  // the page goes without this curve
    }
  }
  std::string title = fmt::format("ringlet train {}", fmt::join(flags_.words, " "));
  write_file_atomically(folder_ / kPage, sweep_page(plan_, outcomes_, curves, title));
}

void Sweep::show(std::size_t run) const {
  const Outcome& outcome = outcomes_[run];
  const auto ended = std::count_if(outcomes_.begin(), outcomes_.end(),
                                   [](const Outcome& o) { return o.status != Status::waiting; });
  std::string figures = "stopped";
  if (outcome.status == Status::failed) figures = "failed: " + outcome.error;
  if (outcome.status == Status::done) {
    const sweep::Figure figure = figure_of(outcomes_);
    figures = fmt::format("{} {}, training loss {:.4f}, {:.1f} s", figure.name,
                          figure.text(outcome.*figure.value), outcome.train_loss, outcome.seconds);
  }
  fmt::print("{:>{}}/{}  {}: {}\n", ended, std::to_string(plan_.runs.size()).size(),
             plan_.runs.size(), name_of(plan_, plan_.runs[run]), figures);
  std::fflush(stdout);
}

/// What a run chose and warned of, which is mostly the same of all, once.
void Sweep::show_news(std::size_t run) {
  constexpr std::string_view kWarning = "ringlet: warning: ";
  constexpr int kMostLines = 100;  // both stand at the beginning
  std::ifstream printed(log_of(run));
  std::string line;
  for (int i = 0; i < kMostLines && std::getline(printed, line) && !printed.eof(); ++i) {
    const bool is_warning = line.starts_with(kWarning);
    const bool is_news =
        is_warning || line.starts_with("chosen    ") || line.starts_with("init      ");
    if (!is_news || !told_.insert(line).second) continue;
    line_.clear();
    if (is_warning) {
      print_warning(line.substr(kWarning.size()));
    } else {
      print_if_possible([&] { fmt::print("{}\n", on_one_line(line)); });
    }
  }
}

/// How many epochs of all are done, on a terminal.
void Sweep::show_progress() {
  constexpr std::chrono::seconds kRenewal(1);
  if (Clock::now() - last_shown_ < kRenewal) return;
  last_shown_ = Clock::now();
  for (const Running& one : running_) show_news(one.run);
  std::int64_t epochs = 0;
  for (const Outcome& outcome : outcomes_) epochs += outcome.epochs;
  for (const Running& one : running_) epochs += epochs_in(folder_of(one.run) / "metrics.jsonl");
  line_.show(epochs);
}

/// Notes which runs have ended, and passes on a wish to stop, once.
void Sweep::look() {
  if (stop_noted() && !told_to_stop_) {
    told_to_stop_ = true;
    for (const Running& one : running_) one.child->send(noted_signal());
  }
  for (std::size_t i = 0; i < running_.size();) {
    const std::optional<int> code = running_[i].child->ended();
    if (!code) {
      ++i;
      continue;
    }
    const std::size_t run = running_[i].run;
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    note(run, *code);
  }
}

void Sweep::run() {
  write();
  std::size_t next = 0;
  const auto at_once = static_cast<std::size_t>(flags_.runs_at_once);
  while (true) {
    while (next < plan_.runs.size() && running_.size() < at_once && !stop_noted() &&
           !nothing_trains()) {
      if (outcomes_[next].status == Status::waiting) start(next);
      ++next;
    }
    if (running_.empty()) break;
    std::this_thread::sleep_for(kLook);
    look();
    show_progress();
  }
  if (!nothing_trains()) return;
  const std::string why = fmt::format("{}: {}", name_of(plan_, plan_.runs[0]), outcomes_[0].error);
  if (outcomes_[0].exit_code == kUsage) throw UsageError(why);
  throw Error(why);
}

int Sweep::finish() const {
  print_if_possible([&] {
    fmt::print("\n{}", summary(plan_, outcomes_));
    if (stop_noted()) {
      fmt::print("\nstopped; the same command with --out {} --resume auto goes on\n",
                 on_one_line(folder_.string()));
    }
    fmt::print("\nwrote {} and {}\n", on_one_line((folder_ / kRecord).string()), kPage);
  });
  if (stop_noted()) return kInterrupted + noted_signal();
  const bool any_failed = std::any_of(outcomes_.begin(), outcomes_.end(),
                                      [](const Outcome& o) { return o.status == Status::failed; });
  return any_failed ? kFailed : 0;
}

/// The epochs of a run, where all have as many; else 0.
std::int64_t epochs_of(const RawFlags& flags, const SweepPlan& plan) {
  for (const sweep::Axis& axis : plan.axes) {
    if (axis.key == "epochs" || axis.key == "model") return 0;
  }
  try {
    return resolve(fit_to_pictures(flags).flags).recipe.epochs;
  } catch (const UsageError&) {  // what is swept makes them right
    return 0;
  }
}

void print_plan(const SweepPlan& plan, const fs::path& folder) {
  fmt::print("folder    {}\n", on_one_line(folder.string()));
  for (const sweep::Axis& axis : plan.axes) {
    fmt::print("sweep     {}: {}\n", axis.key,
               on_one_line(fmt::format("{}", fmt::join(axis.values, ", "))));
  }
  fmt::print("seeds     {}\n", fmt::join(plan.seeds, ", "));
  fmt::print("runs      {}\n\n", plan.runs.size());
  std::fflush(stdout);
}

}  // namespace

void add_sweep_flags(CLI::App& command, SweepFlags& flags, const char* group) {
  CLI::Option* seeds =
      command
          .add_option("--seeds", flags.seeds,
                      "train once with each of these seeds, 1,2,3 or 1..5, and tell mean and "
                      "spread")
          ->type_name("LIST")
          ->group(group);
  seeds->excludes(command.get_option("--seed"));
  CLI::Option* axes =
      command
          .add_option("--sweep", flags.axes,
                      "train with each combination of these values of flags, as lr=0.05,0.1 "
                      "augment=flip,crop-flip")
          ->type_name("FLAG=VALUES...")
          ->group(group);
  for (const char* of_one_run : {"--no-out", "--metrics", "--tensorboard", "--trace"}) {
    for (CLI::Option* flag : {seeds, axes}) flag->excludes(command.get_option(of_one_run));
  }
  command
      .add_option("--runs-at-once", flags.runs_at_once,
                  "so many runs of --seeds and --sweep train at the same time")
      ->transform(whole_number(1, 1024))
      ->capture_default_str()
      ->group(group);
}

void note_words(const CLI::App& command, SweepFlags& sweep) {
  RunFlags flags;
  for (const CLI::Option* option : command.get_options()) {
    const std::string key = key_of(*option);
    if (option->count() == 0 || key.empty() || not_for_runs().count(key) > 0) continue;
    if (key == "seed" || key == "print-config") continue;
    flags.add(*option, fmt::format("{}", fmt::join(option->results(), ",")));
  }
  sweep.words = std::move(flags.words);  // the command line turns no switch off
}

void require_a_sweep(const CLI::App& command) {
  if (command.get_option("--runs-at-once")->count() == 0) return;
  throw UsageError("--runs-at-once is for several runs, of --seeds or --sweep");
}

int run_sweep(const SweepFlags& sweep, const RawFlags& flags, const CLI::App& command) {
  refuse_beside_a_sweep(flags);
  const SweepPlan plan = plan_of(sweep, flags, command);
  note_stop_signals();
  const train::Files& files = flags.options.files;
  const bool resumes = resumes_by_itself(files);
  Sweep all(plan, sweep, command, resumes, files.force, epochs_of(flags, plan));
  all.check_settings();
  const fs::path folder = files.out.empty() ? make_run_folder("runs", "sweep") : files.out;
  if (fs::exists(folder / kRecord) && !resumes && !files.force) {
    throw UsageError(fmt::format(
        "--out {} holds a sweep; go on with it by --resume auto, or replace it with --force",
        on_one_line(folder.string())));
  }
  if (holds_run(folder) && !files.force) {
    throw UsageError(fmt::format("--out {} holds a run; name another folder for the sweep",
                                 on_one_line(folder.string())));
  }
  fs::create_directories(folder);
  const train::RunLock lock(folder);
  Outputs outputs(command, files.force || resumes);
  outputs.writes("--out", folder / kRecord);
  outputs.writes("--out", folder / kPage);
  all.go_on_in(folder);
  print_if_possible([&] { print_plan(plan, folder); });
  all.run();
  return all.finish();
}

}  // namespace ringlet::app
