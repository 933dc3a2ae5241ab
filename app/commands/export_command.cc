// ringlet export
#include <fmt/format.h>

#include <memory>

#include "app/cli/flags.h"
#include "app/cli/usage.h"
#include "app/commands.h"
#include "app/commands/checkpoint.h"
#include "train/files/atomic_file.h"
#include "train/files/json_text.h"
#include "train/onnx/onnx_export.h"

namespace ringlet::app {

namespace {

constexpr const char* kInterface =
    "The ONNX file (operator set 13):\n"
    "  input image     float [N, C, H, W], any N: pixels from 0 to 255 as they are in a file, "
    "light on\n"
    "                  dark where the training images were; the normalisation is in the file\n"
    "  output logits   float [N, K], before the softmax\n"
    "  Its doc_string says so too, and its metadata has the names of the classes.\n";

struct ExportFlags {
  RawFlags raw;
  std::filesystem::path checkpoint;
  std::filesystem::path onnx;
  bool force = false;
};

int export_model(const ExportFlags& flags) {
  if (!flags.force && std::filesystem::exists(flags.onnx)) {
    throw UsageError("--onnx " + flags.onnx.string() +
                     " is there already; replace it with --force");
  }
  const Checkpoint checkpoint = open_checkpoint(flags.checkpoint);
  const train::Recipe recipe = resolve(with_model_of(flags.raw, checkpoint)).recipe;
  const train::ModelInfo info =
      checkpoint.info ? *checkpoint.info : assume_info(checkpoint, recipe, nullptr);
  const std::string bytes = train::to_onnx(checkpoint.file, info);
  train::write_file_atomically(flags.onnx, bytes);
  fmt::print("{}\n", model_in_words(checkpoint.file, info, !checkpoint.info));
  fmt::print("saved {} ({} KiB, ONNX operator set {})\n", train::on_one_line(flags.onnx.string()),
             bytes.size() / 1024, train::kOnnxOpset);
  fmt::print("  input   image   float [N, {}, {}, {}], pixels from 0 to 255\n", info.channels,
             info.height, info.width);
  fmt::print("  output  logits  float [N, {}]: {}\n", info.classes.size(),
             train::on_one_line(fmt::format("{}", fmt::join(info.classes, ", "))));
  return 0;
}

}  // namespace

void add_export_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ExportFlags>();
  CLI::App* command =
      app.add_subcommand("export", "write a trained model as ONNX, for other programs");
  command->footer(kInterface);
  add_checkpoint_flag(*command, flags->checkpoint);
  command->add_option("--onnx", flags->onnx, "the ONNX file to write")
      ->required()
      ->type_name("FILE")
      ->group("Files");
  command->add_flag("--force", flags->force, "replace a file that is there")->group("Files");
  add_model_flag(*command, flags->raw);
  add_no_normalize_flag(*command, flags->raw);
  command->callback([flags, &action] { action = [=] { return export_model(*flags); }; });
}

}  // namespace ringlet::app
