// ringlet export
#include <fmt/format.h>

#include <memory>
#include <string>

#include "app/cli/commands.h"
#include "app/cli/flags.h"
#include "app/cli/help.h"
#include "app/cli/outputs.h"
#include "app/cli/usage.h"
#include "app/commands/checkpoint.h"
#include "base/files/atomic_file.h"
#include "base/files/json_text.h"
#include "train/onnx/onnx_export.h"

namespace ringlet::app {

namespace {

std::string interface_in_words() {
  constexpr std::size_t kColumn = 18;
  const auto row = [](const char* what, const char* is) {
    return help_row(what, is, kColumn, footer_width());
  };
  return "The ONNX file (operator set 13):\n" +
         row("input image",
             "float [N, C, H, W], any N: pixels from 0 to 255 as they are in a file, light on dark "
             "where the training images were; the normalisation is in the file") +
         row("output logits", "float [N, K], before the softmax") +
         "Its doc_string says so too, and its metadata has the names of the classes.\n";
}

struct ExportFlags {
  RawFlags raw;
  std::filesystem::path checkpoint;
  std::filesystem::path onnx;
  bool allow_nonfinite = false;
  bool force = false;
};

int export_model(const ExportFlags& flags, const CLI::App& command) {
  const Checkpoint checkpoint = open_checkpoint(flags.checkpoint);
  Outputs outputs(command, flags.force);
  outputs.reads("--checkpoint", checkpoint.file);
  outputs.writes("--onnx", flags.onnx);
  const train::Recipe recipe = resolve(with_model_of(flags.raw, checkpoint)).recipe;
  const train::ModelInfo info =
      checkpoint.info ? *checkpoint.info : assume_info(checkpoint, recipe, nullptr);
  const std::string bytes =
      train::to_onnx(checkpoint.file, info, {}, nonfinite_of(flags.allow_nonfinite));
  write_file_atomically(flags.onnx, bytes);
  fmt::print("{}\n", model_in_words(checkpoint.file, info, !checkpoint.info));
  fmt::print("saved {} ({} KiB, ONNX operator set {})\n", on_one_line(flags.onnx.string()),
             bytes.size() / 1024, train::kOnnxOpset);
  fmt::print("  input   image   float [N, {}, {}, {}], pixels from 0 to 255\n", info.channels,
             info.height, info.width);
  if (info.embedding > 0) {
    fmt::print("  output  embedding  float [N, {}], of any length\n", info.embedding);
    return 0;
  }
  fmt::print("  output  logits  float [N, {}]: {}\n", info.output_names.size(),
             on_one_line(fmt::format("{}", fmt::join(info.output_names, ", "))));
  return 0;
}

}  // namespace

void add_export_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ExportFlags>();
  CLI::App* command =
      app.add_subcommand("export", "write a trained model as ONNX, for other programs");
  command->footer(interface_in_words());
  add_checkpoint_flag(*command, flags->checkpoint);
  command->add_option("--onnx", flags->onnx, "the ONNX file to write")
      ->required()
      ->type_name("FILE")
      ->group("Files");
  add_force_flag(*command, flags->force)->group("Files");
  add_model_flag(*command, flags->raw);
  add_no_normalize_flag(*command, flags->raw);
  add_allow_nonfinite_flag(*command, flags->allow_nonfinite);
  command->callback(
      [flags, command, &action] { action = [=] { return export_model(*flags, *command); }; });
}

}  // namespace ringlet::app
