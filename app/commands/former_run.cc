#include "app/commands/former_run.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "app/cli/flags.h"
#include "app/cli/settings.h"
#include "app/cli/usage.h"
#include "base/files/file_error.h"
#include "base/one_line.h"
#include "comm/processes/plan_check.h"

namespace ringlet::app {

namespace {

constexpr const char* kAuto = "auto";
constexpr const char* kRunKey = "run";  // beside the names of a Checkpoint
constexpr const char* kFolderKey = "folder of the state";
constexpr const char* kStateKey = "state";

/// Throws FileError where the state is damaged, and says what goes on without it.
void require_whole(const FormerRun& former) {
  try {
    train::require_whole(former.state);
  } catch (const FileError& damage) {
    std::error_code error;
    if (!std::filesystem::exists(former.folder / train::kStateBefore, error)) throw;
    throw FileError(fmt::format("{}; --resume auto --out {} goes on from the state before it",
                                damage.what(), former.folder.string()));
  }
}

}  // namespace

bool resumes_by_itself(const train::Files& files) { return files.resume == kAuto; }

std::optional<FormerRun> read_former_run(const train::Files& files,
                                         std::optional<train::LastState>* last) {
  if (files.resume.empty()) return {};
  const bool by_itself = resumes_by_itself(files);
  if (by_itself && files.out.empty()) {
    throw UsageError(
        "--resume auto goes on with the run in the folder of --out, and there is no --out; name "
        "the folder (a folder called auto: --resume ./auto)");
  }
  FormerRun former;
  if (by_itself) {
    std::optional<train::LastState> found = train::find_last_state(files.out);
    if (last != nullptr) *last = found;
    if (!found) return {};
    former = {files.out, std::move(found->state), {}};
  } else {
    former.state = train::read_state(files.resume);
    former.folder = run_of(former.state.folder);
    require_whole(former);
  }
  former.weights = read_checkpoint(former.state.folder / "model.safetensors");
  return former;
}

std::string to_text(const std::optional<FormerRun>& former) {
  if (!former) return {};
  comm::Plan plan = to_plan(former->weights);
  plan.emplace_back(kRunKey, former->folder.string());
  plan.emplace_back(kFolderKey, former->state.folder.string());
  plan.emplace_back(kStateKey, train::format_state_json(former->state));
  return comm::to_text(plan);
}

std::optional<FormerRun> former_run_of(const std::string& text) {
  if (text.empty()) return {};
  const comm::Plan plan = comm::plan_of(text);
  std::map<std::string, std::string> texts(plan.begin(), plan.end());
  FormerRun former{texts[kRunKey], {}, checkpoint_of(plan)};
  static_cast<train::StateJson&>(former.state) =
      train::parse_state_json(texts[kFolderKey], texts[kStateKey]);
  former.state.folder = texts[kFolderKey];
  return former;
}

namespace {

/// $'..': the quotes in which bash, zsh and ksh read the escapes that a terminal can be shown.
std::string quoted_escapes(const std::string& word) {
  std::string text;
  for (const char c : word) text.append(c == '\'' || c == '\\' ? "\\" : "").append(1, c);
  return "$'" + on_one_line(text, std::string::npos) + "'";
}

/// The word quoted for a shell.
std::string quoted(const std::string& word) {
  const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=/.,:@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  if (on_one_line(word, word.size()) != word) return quoted_escapes(word);
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

bool is_repeated(const CLI::Option& option) {
  // The run keeps these, or they were for its beginning. The first part of the run has written its
  // --trace, which nothing replaces unasked.
  static const std::set<std::string> kOnce{"--model",
                                           "--data",
                                           "--data-dir",
                                           "--synthetic-train",
                                           "--synthetic-test",
                                           "--allow-empty-classes",
                                           "--init",
                                           "--replace-head",
                                           "--out",
                                           "--trace",
                                           "--trace-spans",
                                           "--resume",
                                           "--force",
                                           "--config",
                                           "--print-config"};
  return option.count() > 0 && option.get_group() != kRecipeGroup &&
         kOnce.count(option.get_name()) == 0;
}

/// " --tf32", " --threads 2"; nothing for a switch that a configuration set to false.
std::string as_given(const CLI::Option& option) {
  const std::string value = fmt::format("{}", fmt::join(option.results(), ","));
  if (is_switch(option)) return value == "false" ? "" : " " + option.get_name();
  return " " + option.get_name() + (value.empty() ? "" : " " + quoted(value));
}

}  // namespace

std::string command_to_resume(const CLI::App& command, const std::filesystem::path& folder) {
  std::string text = "ringlet " + command.get_name();
  for (const CLI::Option* option : command.get_options()) {
    if (is_repeated(*option)) text += as_given(*option);
  }
  return text + " --resume " + quoted(folder.string());
}

}  // namespace ringlet::app
