// The program: reads the command line, runs one command, turns errors into one line and a code.
//
// Exit codes: 0 done, 1 failed, 2 the command line is wrong, 128 + n stopped by signal n.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "kernels/error.h"
#include "train/cli/commands.h"
#include "train/cli/suggest.h"
#include "train/version.h"

namespace {

using ringlet::train::Action;

constexpr int kFailed = 1;
constexpr int kUsage = 2;

void print_error(const std::string& message) {
  std::fprintf(stderr, "ringlet: error: %s\n", message.c_str());
}

/// The command that the user chose, however deep; the program itself if none.
const CLI::App* chosen(const CLI::App* app) {
  const auto commands = app->get_subcommands();
  return commands.empty() ? app : chosen(commands.front());
}

/// "--epoch is not a flag of 'ringlet train'; did you mean --epochs?"
std::string explain_unknown(const CLI::App& app, const std::string& word) {
  const CLI::App* command = chosen(&app);
  std::vector<std::string> known;
  for (const CLI::Option* option : command->get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  for (const CLI::App* sub : command->get_subcommands([](const CLI::App*) { return true; })) {
    known.push_back(sub->get_name());
  }
  const std::string meant = ringlet::train::nearest(word.substr(0, word.find('=')), known);
  const std::string line = command == &app ? "ringlet" : "ringlet " + command->get_name();
  return "'" + word + "' is not known to '" + line + "'" +
         (meant.empty() ? "" : "; did you mean " + meant + "?") + " ('" + line +
         " --help' lists everything)";
}

int usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const auto unknown = app.remaining(true);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !unknown.empty()) {
    print_error(explain_unknown(app, unknown.front()));
  } else {
    print_error(error.what());
  }
  return kUsage;
}

int run(int argc, char** argv) {
  CLI::App app("Ringlet trains neural networks on N replicas that make their gradients one.",
               "ringlet");
  app.set_version_flag("--version", std::string("ringlet ") + ringlet::train::kVersion);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  Action action;
  ringlet::train::add_train_command(app, action);
  ringlet::train::add_eval_command(app, action);
  ringlet::train::add_bench_command(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& request) {  // --help, --version
    return app.exit(request);
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error);
  }
  return action();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    print_error(error.what());
  } catch (...) {
    print_error("an unknown error");
  }
  return kFailed;
}
