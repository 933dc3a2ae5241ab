// ringlet trace merge
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <vector>

#include "app/cli/commands.h"
#include "app/cli/outputs.h"
#include "base/one_line.h"
#include "train/telemetry/trace_merge.h"

namespace ringlet::app {

namespace {

struct MergeFlags {
  std::vector<std::filesystem::path> files;
  std::filesystem::path out;
  bool force = false;
};

/// "of the run's 4 processes, 2 and 3 are not in it": with a new line; empty where all are.
std::string absent_in_words(const std::vector<train::MergedTrace>& merged) {
  std::vector<int> absent;
  for (int process = 0; process < merged.front().processes; ++process) {
    const auto is_it = [process](const auto& trace) { return trace.process == process; };
    if (std::ranges::none_of(merged, is_it)) absent.push_back(process);
  }
  if (absent.empty()) return "";
  return fmt::format("of the run's {} processes, {} {} not in it: name the files of all\n",
                     merged.front().processes, fmt::join(absent, ", "),
                     absent.size() == 1 ? "is" : "are");
}

/// "process 2 on b     1,204.2 us behind the clock of process 0, known to 31.0 us, ..."
std::string in_words(const train::MergedTrace& trace) {
  const std::string who = fmt::format("process {} on {}", trace.process, on_one_line(trace.host));
  if (trace.within_us == 0) return fmt::format("{:<24} the clock of process 0\n", who);
  const char* side = trace.behind_us < 0 ? "ahead of" : "behind";
  return fmt::format(
      "{:<24} {:.1f} us {} the clock of process 0, known to {:.1f} us; drift {:.1f} ppm\n", who,
      std::abs(trace.behind_us), side, trace.within_us, trace.drift_ppm);
}

int merge(const MergeFlags& flags, const CLI::App& command) {
  Outputs outputs(command, flags.force);
  for (const auto& file : flags.files) outputs.reads("FILE", file);
  outputs.writes("--out", flags.out);
  const auto merged = train::merge_traces(flags.files, flags.out);
  for (const train::MergedTrace& trace : merged) fmt::print("{}", in_words(trace));
  fmt::print("{}", absent_in_words(merged));
  const std::string out = on_one_line(flags.out.string());
  fmt::print("saved {}; https://ui.perfetto.dev opens it, 'ringlet inspect {}' sums it up\n", out,
             out);
  return 0;
}

}  // namespace

void add_trace_command(CLI::App& app, Action& action) {
  CLI::App* trace = app.add_subcommand("trace", "timelines of runs in several processes");
  trace->require_subcommand(1);
  auto flags = std::make_shared<MergeFlags>();
  CLI::App* command = trace->add_subcommand(
      "merge", "make one timeline of those of a run's processes, on the clock of process 0");
  command->add_option("FILE", flags->files, "what 'ringlet train --processes --trace' wrote")
      ->required()
      ->type_name("FILE...");
  command->add_option("--out", flags->out, "the timeline to write")
      ->required()
      ->type_name("FILE")
      ->group("Files");
  add_force_flag(*command, flags->force)->group("Files");
  command->callback(
      [flags, command, &action] { action = [=] { return merge(*flags, *command); }; });
}

}  // namespace ringlet::app
