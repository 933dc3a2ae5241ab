#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>

#include "app/cli/count_line.h"
#include "app/commands/embeddings_file.h"
#include "app/commands/predict.h"
#include "data/image_folder.h"
#include "train/loop/predictor.h"
#include "train/task/classification_logits.h"

namespace ringlet::app {

std::int64_t write_embeddings(Device& device, const std::filesystem::path& model,
                              const train::ModelInfo& info,
                              const std::shared_ptr<const data::Dataset>& dataset,
                              const train::PredictorOptions& how,
                              const std::filesystem::path& out) {
  train::Predictor predictor(device, model, info, how);
  const std::int64_t size = predictor.width();
  EmbeddingsFile file(out, dataset->size(), size);
  CountLine line(dataset->size(), "images");
  std::int64_t done = 0;
  predictor.each_pass(dataset, [&](std::span<const float> embeddings) {
    const std::int64_t broken = train::first_nonfinite(embeddings, size);
    if (broken >= 0 && how.nonfinite == train::NonFinite::refused) {
      throw FileError(
          fmt::format("{} gives sample {} of {} a number that is not finite; its weights "
                      "are broken",
                      model.string(), done + broken, dataset->name()));
    }
    file.write(embeddings);
    line.show(done += std::ssize(embeddings) / size);
  });
  file.commit();
  if (const auto names = data::picture_names(*dataset); !names.empty()) write_names(out, names);
  return size;
}

}  // namespace ringlet::app
