// ringlet inspect
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "app/cli/checks.h"
#include "app/cli/commands.h"
#include "app/cli/error_exit.h"
#include "app/cli/outputs.h"
#include "app/inspect/format.h"
#include "app/inspect/page.h"
#include "base/error.h"
#include "base/files/atomic_file.h"
#include "base/one_line.h"

namespace ringlet::app {

namespace {

struct InspectFlags {
  std::vector<std::filesystem::path> paths;
  bool json = false;
  std::filesystem::path out;
  bool force = false;
  inspect::Wishes wishes;
};

/// Shows what can be shown; for what is damaged, prints a line of error.
int run(const InspectFlags& flags, const CLI::App& command) {
  Outputs outputs(command, flags.force);
  for (const auto& path : flags.paths) {
    outputs.reads("FILE", path);
    outputs.reads_run("FILE", path);
  }
  outputs.writes("--out", flags.out);
  std::vector<inspect::Document> for_page;
  nlohmann::ordered_json documents = nlohmann::ordered_json::array();
  bool first = true, failed = false;
  for (const auto& path : flags.paths) {
    try {
      inspect::Document document = inspect::inspect(path, flags.wishes);
      if (flags.json) {
        documents.push_back(to_json(document));
      } else {
        fmt::print("{}{}", first ? "" : "\n", to_text(document));
        std::fflush(stdout);
      }
      first = false;
      if (!flags.out.empty()) for_page.push_back(std::move(document));
    } catch (...) {
      print_error(message_of_current_exception());
      failed = true;
    }
  }
  // A path need not be UTF-8; JSON has to be. In ASCII, since a terminal may show it too.
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  if (flags.json) fmt::print("{}\n", documents.dump(2, ' ', true, kReplace));
  if (!for_page.empty()) {
    write_file_atomically(flags.out, page_of(for_page));
    if (!flags.json)
      fmt::print("\nwrote {}; open it in a browser\n", on_one_line(flags.out.string()));
  }
  return failed ? kFailed : 0;
}

}  // namespace

void add_inspect_command(CLI::App& app, Action& action) {
  constexpr int kMostPictures = 1000;
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* command = app.add_subcommand(
      "inspect", "show what is in a file or a run's folder, recognised by content");
  command
      ->add_option(
          "FILE", flags->paths,
          "weights (safetensors), images and labels (IDX), folders of photographs, traces, "
          "metrics, states, runs")
      ->required()
      ->type_name("FILE|DIR...")
      ->group("Files");
  command->add_option("--show", flags->wishes.pictures, "of images: draw the first N as text")
      ->transform(whole_number(0, kMostPictures))
      ->type_name("N")
      ->group("Output");
  command->add_flag("--json", flags->json, "for programs: a list with an object for each")
      ->group("Output");
  command
      ->add_option("--out", flags->out, "write it as a page as well, of photographs with pictures")
      ->type_name("FILE")
      ->group("Output");
  add_force_flag(*command, flags->force)->group("Output");
  command->callback([flags, command, &action] {
    flags->wishes.thumbnails = !flags->out.empty();
    action = [=] { return run(*flags, *command); };
  });
}

}  // namespace ringlet::app
