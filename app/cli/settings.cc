#include "app/cli/settings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string_view>

#include "app/cli/checks.h"
#include "app/cli/config.h"
#include "app/cli/suggest.h"
#include "app/cli/usage.h"
#include "base/one_line.h"
#include "comm/processes/launch.h"
#include "data/open_dataset.h"
#include "train/recipe/recipe_options.h"

namespace ringlet::app {

namespace {

constexpr std::string_view kPrefix = "RINGLET_";

/// Variables that are no flag's: of the library (data/fashion_mnist.h, kernels/device.h,
/// comm/processes/launch.h) and of the scripts.
const std::set<std::string>& other_variables() {
  static const std::set<std::string> names{
      "RINGLET_CONFIG",        "RINGLET_DATA",      "RINGLET_ISA",   "RINGLET_PROCESS",
      "RINGLET_PROCESS_COUNT", "RINGLET_RUN",       "RINGLET_HUB",   "RINGLET_TOKEN",
      "RINGLET_JOBS",          "RINGLET_LOG_LINES", "RINGLET_BOARD", kOfSweep};
  return names;
}

/// The value of a variable; empty where it is not set.
std::string environment(const std::string& name) {
  return comm::environment_variable(name).value_or("");
}

bool is_of_sweep() { return !environment(kOfSweep).empty(); }

bool takes_list(const CLI::Option& option) { return option.get_items_expected_max() > 1; }
/// Whether a flag may stand without its value: --processes [N].
bool may_stand_alone(const CLI::Option& option) {
  return !is_switch(option) && option.get_expected_min() == 0;
}

/// "true", "false", or nothing where it means neither.
std::string truth(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const char* yes : {"true", "1", "yes", "on"}) {
    if (word == yes) return "true";
  }
  for (const char* no : {"false", "0", "no", "off"}) {
    if (word == no) return "false";
  }
  return {};
}

/// CLI11's message without the flag's name in front; the origin is put there instead.
std::string reason(const CLI::Option& option, const std::string& message) {
  const std::string name = option.get_name() + ": ";
  return message.starts_with(name) ? message.substr(name.size()) : message;
}

/// Flags that a file cannot set. A run of a sweep reads the same file and environment, and must not
/// sweep again.
const std::set<std::string>& only_typed() {
  static const std::set<std::string> keys{"help",  "help-all", "version",
                                          "man",   "config",   "print-config",
                                          "seeds", "sweep",    "runs-at-once"};
  return keys;
}

/// The flag's names in files: its key, and its second name, --micro-batches for --accumulate. But
/// two of these are other flags of `train`: eval's --init (--checkpoint), report's --data
/// (--data-dir).
std::vector<std::string> keys_of(const CLI::Option& option) {
  std::vector<std::string> keys;
  for (const std::string& name : option.get_lnames()) {
    const bool is_another = name == "init" || name == "data";
    if (keys.empty() || !is_another) keys.push_back(name);
  }
  return keys;
}

/// Calls visit(command) for every command below `app` that has none of its own.
template <class Visit>
void for_each_command(CLI::App& app, Visit visit) {
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  for (CLI::App* command : commands) for_each_command(*command, visit);
  if (commands.empty()) visit(app);
}

std::vector<CLI::Option*> settable_flags(CLI::App& command) {
  std::vector<CLI::Option*> flags;
  for (CLI::Option* option : command.get_options()) {
    if (can_be_set(*option)) flags.push_back(option);
  }
  return flags;
}

}  // namespace

namespace {

/// What all runs of a sweep, or of one configuration, would write to the same place.
bool is_file_of_one_run(const std::string& key) {
  return key == "metrics" || key == "tensorboard" || key == "trace";
}

/// Whether `option` takes these values; it is left as it was. `is_truth`: they are a boolean's.
bool takes(CLI::Option& option, const std::vector<std::string>& values, bool is_truth,
           bool is_list) {
  if (is_switch(option)) return is_truth;
  if (is_list && !takes_list(option)) return false;
  bool is_taken = true;
  try {
    option.add_result(values);
    option.run_callback();
  } catch (const CLI::ParseError&) {
    is_taken = false;
  }
  option.clear();
  return is_taken;
}

/// Whether a flag that counts more has chosen what `option` is not for, as --optimizer adamw has
/// with momentum, and --data synthetic with image-size.
bool has_no_place(const CLI::App& command, const CLI::Option& option,
                  const std::function<std::string(const std::string& key)>& chosen_above) {
  const std::string data = chosen_above("data");
  const bool is_without_pictures = !data.empty() && !data::is_picture_folder(data);
  if (key_of(option) == "skip-broken") return is_without_pictures;
  for (const auto& row : train::recipe_options().rows()) {
    if (!row.has_flag || command.get_option_no_throw(row.flag_name()) != &option) continue;
    if (row.only.key != nullptr) {
      const std::string chosen = chosen_above(row.only.key);
      const auto& fitting = row.only.values;
      return !chosen.empty() && std::find(fitting.begin(), fitting.end(), chosen) == fitting.end();
    }
    const bool fits = row.key == "image_size" && data::takes_image_size(data);
    return row.of_photographs && is_without_pictures && !fits;
  }
  return false;
}

}  // namespace

CLI::App* chosen_command(CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? &app : chosen_command(*commands.front());
}

std::string key_of(const CLI::Option& option) {
  return option.get_lnames().empty() ? "" : option.get_lnames().front();
}

std::string variable_of(const std::string& key) {
  if (key == "data") return "RINGLET_DATASET";
  std::string name(kPrefix);
  for (const unsigned char c : key) name += c == '-' ? '_' : static_cast<char>(std::toupper(c));
  return name;
}

bool is_switch(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

bool can_be_set(const CLI::Option& option) {
  const std::string key = key_of(option);
  return !key.empty() && only_typed().count(key) == 0;
}

std::string config_file_of(const CLI::App& command) {
  const CLI::Option* option = command.get_option_no_throw("--config");
  if (option != nullptr && option->count() > 0) return option->results().front();
  return environment("RINGLET_CONFIG");
}

Settings::Settings(CLI::App& app) : app_(app) {
  for_each_command(app, [this](CLI::App& command) { prepare(command); });
}

void Settings::prepare(CLI::App& command) {
  const std::vector<CLI::Option*> flags = settable_flags(command);
  if (flags.empty()) return;
  for (CLI::Option* option : flags) {
    for (const std::string& key : keys_of(*option)) keys_.insert(key);
    if (!option->get_required()) continue;
    required_.insert(option);
    option->required(false)->description(option->get_description() + " (required)");
  }
  const char* group = "Configuration";
  command
      .add_option("--config", file_,
                  "take flags from this TOML file, as batch-size = 256 [$RINGLET_CONFIG]")
      ->type_name("FILE")
      ->group(group);
  command
      .add_flag("--print-config", print_only_,
                "print the configuration as such a file and end; a run keeps its own in "
                "OUT/config.toml")
      ->group(group);
}

void Settings::apply(std::vector<std::string>& warnings) {
  command_ = chosen_command(app_);
  if (settable_flags(*command_).empty()) return;
  apply(from_environment());
  const char* named_by = file_.empty() ? "RINGLET_CONFIG" : "--config";
  if (file_.empty()) file_ = config_file_of(*command_);
  if (!file_.empty()) apply(from_file(file_, named_by));
  for (CLI::Option* option : settable_flags(*command_)) {
    if (required_.count(option) > 0 && option->count() == 0) {
      throw CLI::RequiredError(option->get_name());
    }
  }
  if (!environment("RINGLET_PROCESS").empty()) return;  // who started us has said it
  warnings = suspicious_variables();
  warnings.insert(warnings.end(), passed_over_.begin(), passed_over_.end());
}

bool Settings::suits_another(const std::string& key, const std::vector<std::string>& values,
                             bool is_truth, bool is_list) const {
  bool suits = false;
  for_each_command(app_, [&](CLI::App& command) {
    CLI::Option* option = command.get_option_no_throw("--" + key);
    if (suits || &command == command_ || option == nullptr || key_of(*option) != key) return;
    suits = takes(*option, values, is_truth, is_list);
  });
  return suits;
}

void Settings::pass_over(const std::string& origin) {
  passed_over_.push_back(fmt::format("{} is passed over: for '{}' it is another kind of flag",
                                     origin, command_->get_name()));
}

std::string Settings::with_origins(const std::string& message) const {
  std::string told;
  for (const auto& [option, origin] : origins_) {
    const std::string flag = "--" + key_of(*option);
    if (find_flag(message, flag) == message.npos) continue;
    told += fmt::format("{}{} is set by {}", told.empty() ? " (" : ", ", flag, origin);
  }
  return message + (told.empty() ? "" : told + ")");
}

std::vector<Settings::Setting> Settings::from_environment() {
  std::vector<Setting> settings;
  for (CLI::Option* option : settable_flags(*command_)) {
    std::string name, text;
    for (const std::string& key : keys_of(*option)) {
      if (!text.empty()) break;  // its key counts more than its second name
      name = variable_of(key);
      text = environment(name);
    }
    if (text.empty()) continue;
    if (is_of_sweep() && is_file_of_one_run(key_of(*option))) continue;
    std::string value = text;
    if (is_switch(*option)) {
      value = truth(value);
      if (value.empty() && suits_another(key_of(*option), {text}, false, false)) {
        pass_over(name);
        continue;
      }
      if (value.empty()) {
        throw ConfigError(fmt::format("{} is '{}', which is neither true nor false", name, text));
      }
    }
    require_value(*option, name, value);
    settings.push_back({option, {value}, name});
  }
  return settings;
}

namespace {

/// Whether a run keeps its settings in the file (effective_config.h).
bool is_of_run(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return false;  // a pipe is read once
  std::ifstream stream(file);
  std::string head;
  return std::getline(stream, head) && head.starts_with("# ringlet train,");
}

}  // namespace

std::vector<Settings::Setting> Settings::from_file(const std::string& file, const char* named_by) {
  std::vector<Setting> settings, by_second_name;
  // A run's `out` is its folder. Other commands write a file of that name. Its trace and the like
  // go with that folder: neither another command nor a run elsewhere takes their place.
  const bool is_of_train = command_ == app_.get_subcommand("train"), of_run = is_of_run(file);
  const bool is_own = of_run && std::filesystem::path(file).filename() == "config.toml";
  const auto is_given = [this](const char* flag) { return command_->count(flag) > 0; };
  const bool keeps_files =
      !is_of_sweep() &&
      (is_of_train ? !is_own || !(is_given("--out") || is_given("--no-out")) : !of_run);
  constexpr std::size_t kShown = 200;  // bytes of a key
  for (ConfigEntry& entry : read_config(file, named_by)) {
    const std::string location = fmt::format("{}:{}: ", file, entry.line);
    if (only_typed().count(entry.key) > 0) {
      throw ConfigError(fmt::format(
          "{}'{}' is for the command line alone; leave it out of the file", location, entry.key));
    }
    if (keys_.count(entry.key) == 0) {
      const std::string meant = nearest(entry.key, {keys_.begin(), keys_.end()});
      throw ConfigError(fmt::format(
          "{}'{}' is the name of no flag{}", location, on_one_line(entry.key, kShown),
          meant.empty() ? "; --help-all lists them, each to be written without its dashes"
                        : fmt::format("; did you mean {}?", meant)));
    }
    CLI::Option* option = command_->get_option_no_throw("--" + entry.key);
    if (option == nullptr) continue;  // another command's flag
    const std::vector<std::string> keys = keys_of(*option);
    if (std::find(keys.begin(), keys.end(), entry.key) == keys.end()) continue;
    if (of_run && !is_of_train && entry.key == "out") continue;
    if (!keeps_files && is_file_of_one_run(keys.front())) continue;
    const std::string origin = location + entry.key;
    const bool truth = entry.kind == ConfigEntry::Kind::boolean;
    const bool is_list = entry.kind == ConfigEntry::Kind::list;
    const bool fits = is_switch(*option) ? truth
                      : truth            ? may_stand_alone(*option)
                                         : !is_list || takes_list(*option);
    if (!fits && suits_another(entry.key, entry.values, truth, is_list)) {
      if (!of_run) pass_over(origin);
      continue;
    }
    if (is_switch(*option) && !truth) {
      throw ConfigError(origin + ": it is a switch; write true or false");
    }
    if (is_list && !takes_list(*option)) {
      throw ConfigError(origin + ": it takes one value, not a list");
    }
    if (entry.values.empty()) require_value(*option, origin, "");
    for (const std::string& value : entry.values) require_value(*option, origin, value);
    if (truth && may_stand_alone(*option)) {
      if (entry.values.front() == "false") continue;
      entry.values = {""};
    }
    auto& named = entry.key == keys.front() ? settings : by_second_name;
    named.push_back({option, std::move(entry.values), origin, of_run});
  }
  std::ranges::move(by_second_name, std::back_inserter(settings));  // a key counts more
  return settings;
}

void Settings::apply(const std::vector<Setting>& level) {
  std::map<const CLI::Option*, const Setting*> set_here;
  const auto chosen_above = [&](const std::string& key) {
    const CLI::Option* option = command_->get_option_no_throw("--" + key);
    const bool is_above = option != nullptr && option->count() > 0 && !set_here.contains(option);
    return is_above ? option->results().front() : std::string();
  };
  for (const Setting& setting : level) {
    bool silenced =
        setting.option->count() > 0 || has_no_place(*command_, *setting.option, chosen_above);
    for (const CLI::Option* other : setting.option->get_excludes()) {
      if (const auto rival = set_here.find(other); rival != set_here.end()) {
        throw ConfigError(
            fmt::format("{} cannot be combined with {}", setting.origin, rival->second->origin));
      }
      silenced |= other->count() > 0;
    }
    if (silenced) continue;
    try {
      setting.option->add_result(setting.values);
      setting.option->run_callback();
    } catch (const CLI::ParseError& error) {
      const std::string why = reason(*setting.option, error.what());
      setting.option->clear();
      const bool is_list = setting.values.size() > 1;
      if (!suits_another(key_of(*setting.option), setting.values, false, is_list)) {
        throw ConfigError(fmt::format("{}: {}", setting.origin, why));
      }
      if (!setting.is_of_run) pass_over(setting.origin);
      continue;
    }
    set_here[setting.option] = &setting;
    origins_[setting.option] = setting.origin;
  }
}

std::vector<std::string> Settings::suspicious_variables() const {
  std::vector<std::string> known(other_variables().begin(), other_variables().end());
  for (const std::string& key : keys_) known.push_back(variable_of(key));
  std::vector<std::string> warnings;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view entry(*variable);
    const std::string name(entry.substr(0, entry.find('=')));
    if (!name.starts_with(kPrefix) || std::find(known.begin(), known.end(), name) != known.end()) {
      continue;
    }
    // All names share their prefix, so only the rest is compared.
    std::vector<std::string> rests;
    for (const std::string& other : known) rests.push_back(other.substr(kPrefix.size()));
    const std::string meant = nearest(name.substr(kPrefix.size()), rests);
    if (meant.empty()) continue;
    warnings.push_back(
        fmt::format("the variable {} sets nothing; did you mean {}{}?", name, kPrefix, meant));
  }
  return warnings;
}

}  // namespace ringlet::app
