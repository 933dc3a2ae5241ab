#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "app/cli/count_line.h"
#include "app/commands/predict.h"
#include "train/files/safetensors.h"
#include "train/loop/predictor.h"
#include "train/task/classification_logits.h"

namespace ringlet::app {

namespace {

/// Has the labels from the start, and gets the logits pass by pass.
class LogitsFile {
 public:
  LogitsFile(const std::filesystem::path& out, const data::Dataset& dataset,
             const train::ModelInfo& info)
      : file_(out, tensors_of(dataset),
              {{"format", "pt"},
               {"data", dataset.name()},
               {"model", info.model},
               {"classes", train::to_metadata(info).at("ringlet.classes")}}) {
    const std::vector<std::int64_t> labels(dataset.targets().begin(), dataset.targets().end());
    file_.write(labels.data(), labels.size() * sizeof(std::int64_t));
  }
  void write(std::span<const float> logits) { file_.write(logits.data(), logits.size_bytes()); }
  void commit() { file_.commit(); }

 private:
  static std::vector<train::TensorSpec> tensors_of(const data::Dataset& dataset) {
    return {{"labels", "I64", {dataset.size()}},
            {"logits", "F32", {dataset.size(), dataset.target_values()}}};
  }

  train::SafetensorsWriter file_;
};

}  // namespace

train::Evaluation predict_dataset(Device& device, const std::filesystem::path& model,
                                  const train::ModelInfo& info,
                                  const std::shared_ptr<const data::Dataset>& dataset,
                                  const train::PredictorOptions& how,
                                  const std::filesystem::path& out) {
  train::Predictor predictor(device, model, info, how);
  std::optional<LogitsFile> file;
  if (!out.empty()) file.emplace(out, *dataset, info);
  const std::int64_t classes = dataset->target_values();
  train::Judge judge(classes);
  CountLine line(dataset->size(), "images");
  std::int64_t done = 0;
  predictor.each_pass(dataset, [&](std::span<const float> logits) {
    const std::int64_t samples = std::ssize(logits) / classes;
    const std::int64_t broken = train::first_nonfinite(logits, classes);
    if (broken >= 0 && how.nonfinite == train::NonFinite::refused) {
      throw FileError(
          fmt::format("{} gives sample {} of {} a number that is not finite; its weights "
                      "are broken",
                      model.string(), done + broken, dataset->name()));
    }
    if (file) file->write(logits);
    judge.add(logits, dataset->targets().subspan(static_cast<std::size_t>(done),
                                                 static_cast<std::size_t>(samples)));
    line.show(done += samples);
  });
  if (file) file->commit();
  return judge.result();
}

}  // namespace ringlet::app
