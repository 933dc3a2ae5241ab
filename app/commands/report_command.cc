// ringlet report
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include "app/cli/checks.h"
#include "app/cli/commands.h"
#include "app/cli/flags.h"
#include "app/cli/outputs.h"
#include "app/cli/settings.h"
#include "app/cli/signals.h"
#include "app/cli/usage.h"
#include "app/report/follow.h"
#include "app/report/page_server.h"
#include "app/report/report.h"
#include "base/files/atomic_file.h"
#include "base/one_line.h"

namespace ringlet::app {

namespace {

namespace fs = std::filesystem;

struct Flags {
  report::ReportOptions report;
  fs::path out = "report.html";
  bool force = false;
  bool follow = false;
  int port = 0;
};

/// What `ringlet train --model MODEL --print-config` prints.
std::string default_config(const CLI::App& app, const std::string& model) {
  RawFlags flags;
  flags.model = model;
  return effective_config(*app.get_subcommand("train"), values_of(resolve(flags)));
}

/// Serves the page, or writes it, until somebody asks to stop: that is the usual end.
int follow(const Flags& flags, const CLI::App& command) {
  const bool to_file = command.get_option("--out")->count() > 0;
  if (const auto silent = report::silent_run(flags.report.runs)) {
    fmt::print("waiting for {}: it has no metrics.jsonl with a line yet (Ctrl-C ends this)\n",
               on_one_line(silent->string()));
    std::fflush(stdout);
    report::await_runs(flags.report.runs, stop_noted);
    if (stop_noted()) return 0;
  }
  const auto say = [&](const std::string& where) {
    fmt::print("following {}: {} (Ctrl-C ends this)\n",
               flags.report.runs.size() == 1 ? on_one_line(flags.report.runs.front().string())
                                             : fmt::format("{} runs", flags.report.runs.size()),
               where);
    std::fflush(stdout);
  };
  const auto warn = [](const std::string& why) {
    print_warning("the page stays as it was: " + why);
  };
  if (to_file) {
    bool is_first = true;
    report::follow_runs(
        flags.report, report::Renewal::by_itself,
        [&](const std::string& page) {
          write_file_atomically(flags.out, page);
          if (std::exchange(is_first, false)) say(on_one_line(flags.out.string()));
        },
        warn);
    return 0;
  }
  report::PageServer server(flags.port);
  bool is_first = true;
  report::follow_runs(
      flags.report, report::Renewal::asks_server,
      [&](std::string page) {
        server.show(std::move(page));
        if (std::exchange(is_first, false)) say(server.url());
      },
      warn);
  return 0;
}

int run(const Flags& flags, const CLI::App& command) {
  note_stop_signals();
  if (flags.report.runs.size() > report::kMaxRuns) {
    throw UsageError(fmt::format("a report tells of {} runs at most, not {}", report::kMaxRuns,
                                 flags.report.runs.size()));
  }
  Outputs outputs(command, flags.force);
  for (const fs::path& folder : flags.report.runs) outputs.reads_run("RUN", folder);
  outputs.reads_data("--data-dir", flags.report.data_dir);
  if (flags.follow && command.get_option("--out")->count() == 0) return follow(flags, command);
  outputs.writes("--out", flags.out);
  if (flags.follow) return follow(flags, command);
  const std::string page = report::report_page(flags.report);
  write_file_atomically(flags.out, page);
  fmt::print("wrote {} ({} KiB); open it in a browser\n", on_one_line(flags.out.string()),
             (page.size() + 1023) / 1024);
  return 0;
}

}  // namespace

void add_report_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("report", "write a page that shows how one run went, or compares several");
  command->add_option("RUN", flags->report.runs, "the --out of a run; several are compared")
      ->required()
      ->type_name("DIR...");
  command->add_option("--out", flags->out, "the page")
      ->capture_default_str()
      ->type_name("FILE")
      ->group("Files");
  command
      ->add_option("--data-dir,--data", flags->report.data_dir,
                   "where the data lies, if not where the run found it")
      ->type_name("DIR")
      ->group("Files");
  CLI::Option* follow = command->add_flag(
      "--follow", flags->follow,
      "serve the page on this machine while the runs go on, or write --out anew, until Ctrl-C");
  follow->group("Follow");
  command->add_option("--port", flags->port, "where it is served on 127.0.0.1; 0: a free port")
      ->capture_default_str()
      ->transform(whole_number(0, 65535))
      ->type_name("N")
      ->needs(follow)
      ->excludes(command->get_option("--out"))
      ->group("Follow");
  add_force_flag(*command, flags->force)->group("Files");
  flags->report.stop_requested = stop_noted;
  flags->report.default_config = [&app](const std::string& model) {
    return default_config(app, model);
  };
  command->callback([flags, command, &action] { action = [=] { return run(*flags, *command); }; });
}

}  // namespace ringlet::app
