#include <fmt/format.h>

#include <vector>

#include "app/commands/predict.h"
#include "train/files/safetensors.h"
#include "train/loop/logits.h"
#include "train/loop/predictor.h"

namespace ringlet::app {

namespace {

void write_logits(const std::filesystem::path& out, const std::vector<float>& logits,
                  const data::Dataset& dataset, const train::ModelInfo& info) {
  const std::vector<std::int64_t> labels(dataset.labels().begin(), dataset.labels().end());
  const std::vector<train::TensorToWrite> tensors{
      {{"logits", "F32", {dataset.size(), dataset.classes()}}, logits.data()},
      {{"labels", "I64", {dataset.size()}}, labels.data()}};
  train::write_safetensors(out, tensors,
                           {{"format", "pt"},
                            {"data", dataset.name()},
                            {"model", info.model},
                            {"classes", train::to_metadata(info).at("ringlet.classes")}});
}

}  // namespace

train::Evaluation predict_dataset(Device& device, const std::filesystem::path& model,
                                  const train::ModelInfo& info,
                                  const std::shared_ptr<const data::Dataset>& dataset,
                                  const train::PredictorOptions& how,
                                  const std::filesystem::path& out) {
  train::Predictor predictor(device, model, info, how);
  const std::vector<float> logits = predictor.logits(dataset);
  const std::int64_t broken = train::first_nonfinite(logits, dataset->classes());
  if (broken >= 0) {
    throw train::FileError(
        fmt::format("{} gives sample {} of {} a number that is not finite; its weights "
                    "are broken",
                    model.string(), broken, dataset->name()));
  }
  if (!out.empty()) write_logits(out, logits, *dataset, info);
  return train::judge(logits, dataset->labels(), dataset->classes());
}

}  // namespace ringlet::app
