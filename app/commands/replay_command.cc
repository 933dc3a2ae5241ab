// ringlet replay
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/checks.h"
#include "app/cli/commands.h"
#include "app/cli/outputs.h"
#include "app/cli/usage.h"
#include "app/replay/replay_json.h"
#include "app/replay/replay_page.h"
#include "app/replay/still.h"
#include "base/files/atomic_file.h"
#include "base/one_line.h"

namespace ringlet::app {

namespace {

namespace fs = std::filesystem;

struct ReplayFlags {
  fs::path trace;
  std::string call;
  fs::path out, json, still;
  std::vector<int> steps;
  bool force = false;
};

/// "'ring 4K' (1, 2 and 7 more), 'tree 4K' (11) and 3 other names"
std::string list_of(const std::vector<replay::TracedCall>& calls) {
  constexpr std::size_t kMostNames = 12, kMostNumbers = 3;
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> names;
  for (const replay::TracedCall& call : calls) {
    auto known = std::find_if(names.begin(), names.end(),
                              [&call](const auto& name) { return name.first == call.name; });
    if (known == names.end()) known = names.insert(known, {call.name, {}});
    known->second.push_back(call.number);
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNames); ++i) {
    const auto& [name, numbers] = names[i];
    const std::size_t told = std::min(numbers.size(), kMostNumbers), more = numbers.size() - told;
    text += fmt::format("{}'{}' ({}{})", text.empty() ? "" : ", ", on_one_line(name, 80),
                        fmt::join(numbers.begin(), numbers.begin() + static_cast<long>(told), ", "),
                        more > 0 ? fmt::format(" and {} more", more) : "");
  }
  const std::size_t others = names.size() - std::min(names.size(), kMostNames);
  return others > 0 ? fmt::format("{} and {} other names", text, others) : text;
}

/// Leaves those that --call names, by their number, their name or both.
void choose_calls(std::vector<replay::TracedCall>& calls, const std::string& wanted) {
  if (wanted.empty()) return;
  const std::string all = list_of(calls);
  std::erase_if(calls, [&wanted](const replay::TracedCall& call) {
    const std::string number = std::to_string(call.number);
    return number != wanted && call.name != wanted && call.name + ":" + number != wanted;
  });
  if (!calls.empty()) return;
  throw UsageError(fmt::format("--call {}: the trace has no such call; it has {}",
                               on_one_line(wanted, 80), all));
}

void check_replay(const ReplayFlags& flags, const CLI::App& command) {
  if (flags.out.empty() && flags.json.empty() && flags.still.empty()) {
    throw UsageError("say what to write: --out for the page, --json or --still");
  }
  if (!flags.steps.empty() && flags.still.empty()) {
    throw UsageError("--steps is of the picture of --still; add that");
  }
  Outputs outputs(command, flags.force);
  outputs.reads("TRACE", flags.trace);
  outputs.writes("--out", flags.out);
  outputs.writes("--json", flags.json);
  outputs.writes("--still", flags.still);
}

void require_steps(const std::vector<int>& steps, const replay::Replay& replay) {
  for (const int step : steps) {
    if (0 <= step && step <= replay.steps) continue;
    throw UsageError(fmt::format("--steps {}: {} has the steps 0 to {}", step, replay.call->text(),
                                 replay.steps));
  }
}

void write_replay(const fs::path& file, const std::string& text) {
  if (file.empty()) return;
  write_file_atomically(file, text);
  fmt::print("wrote {} ({} KiB)\n", on_one_line(file.string()), (text.size() + 1023) / 1024);
}

int replay_trace(const ReplayFlags& flags, const CLI::App& command) {
  check_replay(flags, command);
  replay::TracedRun run = replay::read_calls(flags.trace);
  choose_calls(run.calls, flags.call);
  std::vector<replay::Replay> replays;
  for (const replay::TracedCall& call : run.calls) replays.push_back(replay::replay_of(call));
  if (!flags.still.empty()) {
    require_steps(flags.steps, replays.front());
    write_replay(flags.still, replay::still_of(replays.front(), flags.steps));
  }
  if (!flags.json.empty()) write_replay(flags.json, replay::to_json_text(replays));
  if (!flags.out.empty()) {
    write_replay(flags.out, replay::page_of(flags.trace.filename().string(), run, replays));
  }
  if (run.left_out > 0) {
    fmt::print("{} left out: the trace was full before all of it was there\n",
               run.left_out == 1 ? "1 call is" : fmt::format("{} calls are", run.left_out));
  }
  return 0;
}

}  // namespace

void add_replay_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ReplayFlags>();
  CLI::App* command = app.add_subcommand(
      "replay", "write a page on which an all-reduce of a trace plays, message by message");
  command->add_option("TRACE", flags->trace, "what --trace or 'ringlet trace merge' wrote")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--call", flags->call,
                   "only calls with this number, of this name, or NAME:NUMBER")
      ->type_name("N|NAME");
  command->add_option("--out", flags->out, "the page")->type_name("FILE")->group("Files");
  command->add_option("--json", flags->json, "whose numbers are where, and when, for programs")
      ->type_name("FILE")
      ->group("Files");
  command->add_option("--still", flags->still, "a picture of the first call, after --steps")
      ->type_name("FILE.svg")
      ->group("Files");
  command
      ->add_option("--steps", flags->steps,
                   "those of the picture; 0 is the beginning; all unless you choose")
      ->delimiter(',')
      ->transform(whole_number(0))
      ->type_name("N,...")
      ->group("Files");
  add_force_flag(*command, flags->force)->group("Files");
  command->callback(
      [flags, command, &action] { action = [=] { return replay_trace(*flags, *command); }; });
}

}  // namespace ringlet::app
