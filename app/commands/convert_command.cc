// ringlet convert
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "app/cli/commands.h"
#include "app/cli/count_line.h"
#include "app/cli/error_exit.h"
#include "app/cli/outputs.h"
#include "app/cli/signals.h"
#include "app/cli/usage.h"
#include "base/one_line.h"
#include "data/convert.h"
#include "data/record_dataset.h"

namespace ringlet::app {

namespace {

namespace fs = std::filesystem;

struct ConvertFlags {
  fs::path input, out;
  bool force = false;
};

enum class Form { pairs, records, folder };

Form form_of(const fs::path& input) {
  std::error_code error;
  if (fs::is_directory(input, error)) return Form::folder;
  return data::is_record_file(input.string()) ? Form::records : Form::pairs;
}

/// Throws UsageError unless --out has the form that the input becomes.
void require_fitting(const ConvertFlags& flags, Form form) {
  const bool is_rec = flags.out.extension() == ".rec";
  if (form == Form::folder && !is_rec) {
    throw UsageError(fmt::format(
        "--out {} does not end in .rec, which a folder becomes; name a file", flags.out.string()));
  }
  if (form != Form::folder && is_rec) {
    throw UsageError(fmt::format("--out {} ends in .rec, and {} becomes a folder; name a folder",
                                 flags.out.string(), flags.input.string()));
  }
}

data::Converted convert(const ConvertFlags& flags, Form form, const data::ConvertOptions& options) {
  switch (form) {
    case Form::pairs:
      return data::convert_bin(flags.input, flags.out, options);
    case Form::records:
      return data::convert_records(flags.input, flags.out, options);
    case Form::folder:
      break;
  }
  return data::convert_folder(flags.input, flags.out, options);
}

int run_convert(const ConvertFlags& flags, const CLI::App& command) {
  note_stop_signals();
  const Form form = form_of(flags.input);
  require_fitting(flags, form);
  Outputs outputs(command, flags.force);
  outputs.reads("FILE", flags.input);
  if (form == Form::folder) {
    outputs.writes("--out", flags.out);
    outputs.writes("--out", fs::path(flags.out).replace_extension(".idx"));
  } else {
    outputs.writes_folder("--out", flags.out, data::foreign_entry(flags.out));
  }
  std::optional<CountLine> line;
  const data::Converted result = convert(
      flags, form,
      {.stop_requested = stop_noted, .progress = [&line](std::int64_t done, std::int64_t total) {
         if (!line) line.emplace(total, "pictures");
         line->show(done);
       }});
  line.reset();
  for (const std::string& note : result.notes) print_warning(note);
  const std::string out = on_one_line(flags.out.string());
  if (form == Form::pairs) {
    fmt::print("saved {}: {} pictures and pairs.txt, {} pairs, {} of the same identity\n", out,
               result.pictures, result.pairs, result.same);
  } else {
    fmt::print("saved {}: {} pictures of {} identities\n", out, result.pictures, result.identities);
  }
  return 0;
}

}  // namespace

void add_convert_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ConvertFlags>();
  CLI::App* command = app.add_subcommand(
      "convert", "make folders of .rec and .bin files of faces, and a .rec of a folder");
  command
      ->add_option("FILE", flags->input,
                   "pairs (.bin or text) or a .rec, which become a folder of pictures; or a folder "
                   "of identities (IDENTITY/*), which becomes a .rec and its .idx")
      ->required()
      ->type_name("FILE|DIR");
  command->add_option("--out", flags->out, "the folder, or the .rec, to write")
      ->required()
      ->type_name("DIR|FILE")
      ->group("Files");
  add_force_flag(*command, flags->force)->group("Files");
  command->callback(
      [flags, command, &action] { action = [=] { return run_convert(*flags, *command); }; });
}

}  // namespace ringlet::app
